package io.confluent.kafka.schemaregistry.client.rest.exceptions;

/** As {@link io.confluent.kafka.schemaregistry.client.SchemaRegistryClient}: only the name is needed. */
public class RestClientException extends Exception {
    private static final long serialVersionUID = 1;
}
