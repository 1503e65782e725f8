import edu.uci.ics.crawler4j.crawler.CrawlConfig;
import edu.uci.ics.crawler4j.crawler.CrawlController;
import edu.uci.ics.crawler4j.crawler.Page;
import edu.uci.ics.crawler4j.crawler.WebCrawler;
import edu.uci.ics.crawler4j.fetcher.PageFetcher;
import edu.uci.ics.crawler4j.parser.HtmlParseData;
import edu.uci.ics.crawler4j.robotstxt.RobotstxtConfig;
import edu.uci.ics.crawler4j.robotstxt.RobotstxtServer;
import edu.uci.ics.crawler4j.url.WebURL;
import java.util.regex.Pattern;

/**
 * A peer: crawler4j with a Solr writer, as one writes it in an afternoon.
 *
 * <p>Arguments: START_URL CORE_URL REQUESTS_IN_FLIGHT STORAGE_FOLDER
 */
public final class Crawler4jPeer extends WebCrawler {
    /** What is no page: links to pictures, styles and scripts count as links here. */
    private static final Pattern LEFT_OUT = Pattern.compile(".*\\.(txt|css|js|png|gif|jpe?g|svg|ico|webp)$");
    private final String startUrl;
    private final SolrWriter writer;

    private Crawler4jPeer(String startUrl, SolrWriter writer) {
        this.startUrl = startUrl;
        this.writer = writer;
    }

    @Override
    public boolean shouldVisit(Page referrer, WebURL url) {
        String address = url.getURL();
        return address.startsWith(startUrl) && !LEFT_OUT.matcher(address).matches();
    }

    @Override
    public void visit(Page page) {
        if (page.getParseData() instanceof HtmlParseData) {
            HtmlParseData data = (HtmlParseData) page.getParseData();
            String title = data.getTitle() == null ? "" : data.getTitle();
            String text = data.getText().replaceAll("\\s+", " ").trim();
            writer.add(page.getWebURL().getURL(), title, text);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String startUrl = arguments[0];
        SolrWriter writer = new SolrWriter(arguments[1]);
        int inFlight = Integer.parseInt(arguments[2]);
        CrawlConfig config = new CrawlConfig();
        config.setCrawlStorageFolder(arguments[3]);
        config.setResumableCrawling(true);
        config.setPolitenessDelay(0);
        config.setMaxConnectionsPerHost(inFlight);
        config.setMaxTotalConnections(inFlight);
        config.setMaxDownloadSize(32 << 20);
        // Without this a page with more than 5,000 links loses the rest.
        config.setMaxOutgoingLinksToFollow(Integer.MAX_VALUE);
        // By default it waits half a minute at the end.
        config.setThreadMonitoringDelaySeconds(1);
        config.setThreadShutdownDelaySeconds(1);
        config.setCleanupDelaySeconds(1);
        PageFetcher fetcher = new PageFetcher(config);
        RobotstxtServer robots = new RobotstxtServer(new RobotstxtConfig(), fetcher);
        CrawlController controller = new CrawlController(config, fetcher, robots);
        controller.addSeed(startUrl);
        controller.start(() -> new Crawler4jPeer(startUrl, writer), inFlight);
        writer.close();
    }
}
