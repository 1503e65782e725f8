// A peer: Colly with a Solr writer, as one writes it in an afternoon.
//
//	colly [-own-set] START_URL CORE_URL REQUESTS_IN_FLIGHT [FOLDER]
//
// It keeps nothing, so the folder stays empty. With -own-set the program remembers links itself and shows Colly
// each only once: Colly asks whether a page was seen and notes it in two steps, so that it fetches some twice.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"
)

const batchDocuments = 100

type document struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Title   string `json:"title"`
	Content string `json:"content"`
	// The core refuses documents without a version.
	CrawlVersion int `json:"crawl_version"`
}

// solrWriter collects documents and posts a batch at a time.
type solrWriter struct {
	coreURL string
	mutex   sync.Mutex
	batch   []document
}

func (writer *solrWriter) add(found document) {
	writer.mutex.Lock()
	writer.batch = append(writer.batch, found)
	var full []document
	if len(writer.batch) >= batchDocuments {
		full, writer.batch = writer.batch, nil
	}
	writer.mutex.Unlock()
	if full != nil {
		writer.post(full, "")
	}
}

func (writer *solrWriter) post(batch []document, query string) {
	body, err := json.Marshal(batch)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := http.Post(writer.coreURL+"/update"+query, "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		log.Fatalf("Solr answers %s: %s", answer.Status, text)
	}
}

func main() {
	ownSet := flag.Bool("own-set", false, "show Colly each link only once")
	flag.Parse()
	if flag.NArg() < 3 {
		log.Fatal("usage: colly [-own-set] START_URL CORE_URL REQUESTS_IN_FLIGHT [FOLDER]")
	}
	start, err := url.Parse(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	inFlight, err := strconv.Atoi(flag.Arg(2))
	if err != nil {
		log.Fatal(err)
	}
	writer := &solrWriter{coreURL: flag.Arg(1)}
	collector := colly.NewCollector(
		colly.Async(true),
		colly.AllowedDomains(start.Hostname()),
		colly.DisallowedURLFilters(regexp.MustCompile(`\.(txt|css|js|png|gif|jpe?g|svg|ico|webp)$`)),
		colly.MaxBodySize(32<<20),
	)
	collector.IgnoreRobotsTxt = false
	// Go keeps two idle connections to a host; the others would be opened anew for each page.
	collector.WithTransport(&http.Transport{MaxIdleConnsPerHost: inFlight})
	if err := collector.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: inFlight}); err != nil {
		log.Fatal(err)
	}
	var seen sync.Map
	seen.Store(start.String(), true)
	collector.OnHTML("html", func(page *colly.HTMLElement) {
		page.ForEach("a[href]", func(_ int, link *colly.HTMLElement) {
			// With its fragment each link would be a page of its own.
			target, _, _ := strings.Cut(page.Request.AbsoluteURL(link.Attr("href")), "#")
			if *ownSet {
				if _, known := seen.LoadOrStore(target, true); known {
					return
				}
			}
			// Errors: seen, outside, refused by robots.txt.
			_ = page.Request.Visit(target)
		})
		address := page.Request.URL.String()
		title := page.DOM.Find("title").First().Text()
		page.DOM.Find("head, script, style").Remove()
		text := strings.Join(strings.Fields(page.DOM.Text()), " ")
		writer.add(document{ID: address, URL: address, Title: title, Content: text, CrawlVersion: 1})
	})
	collector.OnError(func(answer *colly.Response, err error) {
		fmt.Fprintln(os.Stderr, answer.Request.URL, err)
	})
	if err := collector.Visit(start.String()); err != nil {
		log.Fatal(err)
	}
	collector.Wait()
	writer.post(writer.batch, "?commit=true")
}
