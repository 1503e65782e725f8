import com.google.gson.Gson;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Collects documents and posts a batch at a time. */
final class SolrWriter {
    private static final int BATCH_DOCUMENTS = 100;
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Gson gson = new Gson();
    private final String coreUrl;
    private List<Map<String, Object>> batch = new ArrayList<>();

    SolrWriter(String coreUrl) {
        this.coreUrl = coreUrl;
    }

    void add(String url, String title, String content) {
        List<Map<String, Object>> full = null;
        synchronized (this) {
            // The core refuses documents without a version.
            batch.add(Map.of("id", url, "url", url, "title", title, "content", content, "crawl_version", 1));
            if (batch.size() >= BATCH_DOCUMENTS) {
                full = batch;
                batch = new ArrayList<>();
            }
        }
        if (full != null) {
            post(full, "");
        }
    }

    /** Posts the rest and makes everything visible. */
    void close() {
        post(batch, "?commit=true");
    }

    private void post(List<Map<String, Object>> documents, String query) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(coreUrl + "/update" + query))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(gson.toJson(documents)))
                .build();
        try {
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IOException("Solr answers " + answer.statusCode() + ": " + answer.body());
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
