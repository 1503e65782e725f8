"""What a page of one origin may do with others: cases for bare Chromium and for the browser of a crawl."""
