# kafka.gp - what f3-ingest-kafka, f4-batch-size-kafka and f5-read-latency share: an arm's name and colour, from its columns.
arm_of(x) = strcol("world") eq "commit" ? "Lakestream, dac" : \
  "Kafka, ".(strcol("kafka.discipline") eq "whole" ? "one record a batch" : strcol("kafka.discipline") eq "index" ? "record a rank + index topic" : "record a rank + transaction").\
  (limits_differ ? (column("kafka.message_max_bytes") > 1e8 ? ", raised limits" : ", default limits") : "").\
  (brokers_differ ? sprintf(", %d brokers", column("kafka.brokers")) : "")
pick(i, metric) = arm_of(0) eq name[i] ? column(metric) : NaN
