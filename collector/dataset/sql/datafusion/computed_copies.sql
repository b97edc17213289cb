WITH "t8" AS (
  SELECT
    "t3"."id" AS "target_id",
    "t3"."label" AS "target"
  FROM "enum_memory_kind" AS "t3"
)
SELECT
  "t18"."run",
  "t18"."rank",
  "t18"."step",
  "t18"."device_id",
  "t18"."kind",
  "t18"."source",
  "t18"."target",
  COUNT(*) AS "count",
  SUM(CASE WHEN "t18"."num_bytes" = 0 THEN 1 ELSE 0 END) AS "unknown_sizes",
  SUM("t18"."num_bytes") AS "num_bytes",
  SUM("t18"."duration_ns") AS "total_ns"
FROM (
  SELECT
    "t18"."num_bytes",
    "t18"."duration_ns",
    "t18"."run",
    "t18"."rank",
    "t18"."step",
    "t18"."device_id",
    "t18"."kind",
    "t18"."source",
    "t18"."target"
  FROM (
    SELECT
      *
    FROM (
      SELECT
        "t14"."run",
        "t14"."rank",
        "t14"."step",
        "t14"."device_id",
        "t14"."kind",
        "t14"."source",
        "t14"."target",
        "t14"."num_bytes",
        "t14"."duration_ns"
      FROM (
        SELECT
          "t4"."run",
          "t4"."rank",
          "t4"."step",
          "t4"."id",
          "t4"."start_ns",
          "t4"."duration_ns",
          "t4"."device_id",
          "t4"."context_id",
          "t4"."stream_id",
          "t4"."correlation_id",
          "t4"."num_bytes",
          "t4"."copy_kind",
          "t4"."src_kind",
          "t4"."dst_kind",
          "t4"."is_async",
          "t4"."src_device_id",
          "t4"."src_context_id",
          "t4"."dst_device_id",
          "t4"."dst_context_id",
          "t4"."graph_id",
          "t4"."graph_node_id",
          "t4"."source_graph_node_id",
          "t4"."captured_external_id",
          "t4"."graph_degree",
          "t4"."process_id",
          "t4"."op",
          "t9"."kind",
          "t10"."source",
          "t12"."target"
        FROM "copies" AS "t4"
        INNER JOIN (
          SELECT
            "t2"."id" AS "kind_id",
            "t2"."label" AS "kind"
          FROM "enum_copy_kind" AS "t2"
        ) AS "t9"
          ON "t4"."copy_kind" = "t9"."kind_id"
        INNER JOIN (
          SELECT
            "t3"."id" AS "source_id",
            "t3"."label" AS "source"
          FROM "enum_memory_kind" AS "t3"
        ) AS "t10"
          ON "t4"."src_kind" = "t10"."source_id"
        INNER JOIN "t8" AS "t12"
          ON "t4"."dst_kind" = "t12"."target_id"
      ) AS "t14"
    ) AS "t16"
    UNION ALL
    SELECT
      *
    FROM (
      SELECT
        "t15"."run",
        "t15"."rank",
        "t15"."step",
        "t15"."device_id",
        'memset' AS "kind",
        '' AS "source",
        "t15"."target",
        "t15"."num_bytes",
        "t15"."duration_ns"
      FROM (
        SELECT
          "t5"."run",
          "t5"."rank",
          "t5"."step",
          "t5"."id",
          "t5"."start_ns",
          "t5"."duration_ns",
          "t5"."device_id",
          "t5"."context_id",
          "t5"."stream_id",
          "t5"."correlation_id",
          "t5"."num_bytes",
          "t5"."value",
          "t5"."memory_kind",
          "t5"."is_async",
          "t5"."graph_id",
          "t5"."graph_node_id",
          "t5"."source_graph_node_id",
          "t5"."captured_external_id",
          "t5"."graph_degree",
          "t5"."process_id",
          "t5"."op",
          "t13"."target"
        FROM "memsets" AS "t5"
        INNER JOIN "t8" AS "t13"
          ON "t5"."memory_kind" = "t13"."target_id"
      ) AS "t15"
    ) AS "t17"
  ) AS "t18"
) AS t18
GROUP BY
  "t18"."run",
  "t18"."rank",
  "t18"."step",
  "t18"."device_id",
  "t18"."kind",
  "t18"."source",
  "t18"."target"
