"""Commands of Scrapy that know what a source is: Scrapy's command line takes them in the place of its own."""
