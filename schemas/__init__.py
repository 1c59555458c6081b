"""What travels on the topics: requests, results, errors, headers. Knows neither Kafka nor torch."""
