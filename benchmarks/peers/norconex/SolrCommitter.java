import com.google.gson.Gson;
import com.norconex.committer.core.AbstractMappedCommitter;
import com.norconex.committer.core.CommitterException;
import com.norconex.committer.core.IAddOperation;
import com.norconex.committer.core.ICommitOperation;
import com.norconex.committer.core.IDeleteOperation;
import com.norconex.commons.lang.map.Properties;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamWriter;
import org.apache.commons.configuration.XMLConfiguration;

/** Posts the batches of Norconex's own queue, which is on disk; deletions are left out, for a first run has none. */
public final class SolrCommitter extends AbstractMappedCommitter {
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Gson gson = new Gson();
    private final String coreUrl;

    SolrCommitter(String coreUrl) {
        this.coreUrl = coreUrl;
        setTargetReferenceField("id");
        setTargetContentField("content");
        setQueueSize(100);
        setCommitBatchSize(100);
    }

    @Override
    protected void commitBatch(List<ICommitOperation> batch) {
        List<Map<String, Object>> documents = new ArrayList<>();
        for (ICommitOperation operation : batch) {
            if (operation instanceof IDeleteOperation) {
                throw new CommitterException("a first run deletes nothing: " + operation);
            }
            Properties fields = ((IAddOperation) operation).getMetadata();
            String url = fields.getString("id");
            String title = fields.getString("title", "");
            String content = fields.getString("content", "").replaceAll("\\s+", " ").trim();
            // The core refuses documents without a version.
            documents.add(Map.of("id", url, "url", url, "title", title, "content", content, "crawl_version", 1));
        }
        post(gson.toJson(documents), "");
    }

    @Override
    protected void commitComplete() {
        super.commitComplete();
        post("[]", "?commit=true");
    }

    private void post(String body, String query) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(coreUrl + "/update" + query))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        try {
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new CommitterException("Solr answers " + answer.statusCode() + ": " + answer.body());
            }
        } catch (IOException | InterruptedException error) {
            throw new CommitterException("Solr cannot be reached", error);
        }
    }

    @Override
    protected void saveToXML(XMLStreamWriter writer) throws XMLStreamException {
        writer.writeStartElement("coreUrl");
        writer.writeCharacters(coreUrl);
        writer.writeEndElement();
    }

    @Override
    protected void loadFromXml(XMLConfiguration xml) {
        // Made by its constructor alone.
    }
}
