"""The stream processor: Kafka in, Kafka out. Knows torch only through `semif_engine`."""
