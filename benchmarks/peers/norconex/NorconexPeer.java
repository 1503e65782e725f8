import com.norconex.collector.core.filter.impl.RegexReferenceFilter;
import com.norconex.collector.http.HttpCollector;
import com.norconex.collector.http.HttpCollectorConfig;
import com.norconex.collector.http.crawler.HttpCrawlerConfig;
import com.norconex.collector.http.crawler.URLCrawlScopeStrategy;
import com.norconex.collector.http.delay.impl.GenericDelayResolver;
import com.norconex.collector.http.url.impl.GenericURLNormalizer;
import com.norconex.collector.http.url.impl.GenericURLNormalizer.Normalization;
import com.norconex.importer.ImporterConfig;
import com.norconex.importer.handler.filter.OnMatch;
import com.norconex.importer.handler.tagger.impl.KeepOnlyTagger;
import java.io.File;
import org.apache.log4j.BasicConfigurator;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/**
 * A peer: Norconex HTTP Collector, set up for one site.
 *
 * <p>Arguments: START_URL CORE_URL REQUESTS_IN_FLIGHT WORK_FOLDER
 */
public final class NorconexPeer {
    /** What is no page: links to pictures count as links here. */
    private static final String LEFT_OUT = ".*\\.(txt|css|js|png|gif|jpe?g|svg|ico|webp)";

    private NorconexPeer() {}

    public static void main(String[] arguments) {
        // One line for each step of each page would cost more than some of the steps.
        BasicConfigurator.configure();
        Logger.getRootLogger().setLevel(Level.WARN);
        File folder = new File(arguments[3]);
        HttpCollectorConfig collector = new HttpCollectorConfig();
        collector.setId("peer");
        collector.setProgressDir(new File(folder, "progress").getPath());
        collector.setLogsDir(new File(folder, "logs").getPath());
        collector.setCrawlerConfigs(crawler(arguments[0], arguments[1], Integer.parseInt(arguments[2]), folder));
        new HttpCollector(collector).start(false);
    }

    private static HttpCrawlerConfig crawler(String startUrl, String coreUrl, int inFlight, File folder) {
        HttpCrawlerConfig crawler = new HttpCrawlerConfig();
        crawler.setId("pages");
        crawler.setStartURLs(startUrl);
        crawler.setWorkDir(new File(folder, "work"));
        crawler.setNumThreads(inFlight);
        crawler.setIgnoreSitemap(true);
        // The pages name file:///usr/share/doc/… as canonical; believed, hundreds of them are lost.
        crawler.setIgnoreCanonicalLinks(true);
        crawler.setReferenceFilters(new RegexReferenceFilter(LEFT_OUT, OnMatch.EXCLUDE));
        GenericDelayResolver delay = new GenericDelayResolver();
        delay.setDefaultDelay(0);
        crawler.setDelayResolver(delay);
        URLCrawlScopeStrategy scope = new URLCrawlScopeStrategy();
        scope.setStayOnDomain(true);
        scope.setStayOnPort(true);
        crawler.setUrlCrawlScopeStrategy(scope);
        GenericURLNormalizer normalizer = new GenericURLNormalizer();
        // Its defaults and dot segments: with ../../ kept in them the URLs have no end.
        normalizer.setNormalizations(
                Normalization.removeFragment,
                Normalization.lowerCaseSchemeHost,
                Normalization.upperCaseEscapeSequence,
                Normalization.decodeUnreservedCharacters,
                Normalization.removeDefaultPort,
                Normalization.encodeNonURICharacters,
                Normalization.removeDotSegments);
        crawler.setUrlNormalizer(normalizer);
        KeepOnlyTagger fields = new KeepOnlyTagger();
        fields.addField("title");
        fields.addField("document.reference");
        ImporterConfig importer = new ImporterConfig();
        importer.setTempDir(new File(folder, "importer"));
        importer.setPostParseHandlers(fields);
        crawler.setImporterConfig(importer);
        SolrCommitter committer = new SolrCommitter(coreUrl);
        committer.setQueueDir(new File(folder, "queue").getPath());
        crawler.setCommitter(committer);
        return crawler;
    }
}
