package io.confluent.kafka.schemaregistry.client;

/**
 * Stands where the database expects a class of another company's, whose jars are not where all others come from:
 * it looks the name up when it starts, and uses it only for streams to that company's product.
 */
public interface SchemaRegistryClient {}
