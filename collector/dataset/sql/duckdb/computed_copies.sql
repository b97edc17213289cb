SELECT
  "t24"."run",
  "t24"."rank",
  "t24"."step",
  "t24"."device_id",
  "t24"."kind",
  "t24"."source",
  "t24"."target",
  COUNT(*) AS "count",
  SUM(CASE WHEN "t24"."num_bytes" BETWEEN 1 AND 70368744177664 THEN 0 ELSE 1 END) AS "unknown_sizes",
  SUM(
    CASE
      WHEN "t24"."num_bytes" BETWEEN 1 AND 70368744177664
      THEN "t24"."num_bytes"
      ELSE 0
    END
  ) AS "num_bytes",
  SUM("t24"."duration_ns") AS "total_ns"
FROM (
  SELECT
    *
  FROM (
    SELECT
      "t22"."run",
      "t22"."rank",
      "t22"."step",
      "t22"."device_id",
      "t22"."kind",
      "t22"."source",
      COALESCE("t22"."target", 'kind ' || CAST("t22"."dst_kind" AS TEXT)) AS "target",
      "t22"."num_bytes",
      "t22"."duration_ns"
    FROM (
      SELECT
        "t21"."run",
        "t21"."rank",
        "t21"."step",
        "t21"."id",
        "t21"."start_ns",
        "t21"."duration_ns",
        "t21"."device_id",
        "t21"."context_id",
        "t21"."stream_id",
        "t21"."correlation_id",
        "t21"."num_bytes",
        "t21"."copy_kind",
        "t21"."src_kind",
        "t21"."dst_kind",
        "t21"."is_async",
        "t21"."src_device_id",
        "t21"."src_context_id",
        "t21"."dst_device_id",
        "t21"."dst_context_id",
        "t21"."graph_id",
        "t21"."graph_node_id",
        "t21"."source_graph_node_id",
        "t21"."captured_external_id",
        "t21"."graph_degree",
        "t21"."process_id",
        "t21"."op",
        "t21"."kind",
        "t21"."source",
        "t10"."target"
      FROM (
        SELECT
          "t19"."run",
          "t19"."rank",
          "t19"."step",
          "t19"."id",
          "t19"."start_ns",
          "t19"."duration_ns",
          "t19"."device_id",
          "t19"."context_id",
          "t19"."stream_id",
          "t19"."correlation_id",
          "t19"."num_bytes",
          "t19"."copy_kind",
          "t19"."src_kind",
          "t19"."dst_kind",
          "t19"."is_async",
          "t19"."src_device_id",
          "t19"."src_context_id",
          "t19"."dst_device_id",
          "t19"."dst_context_id",
          "t19"."graph_id",
          "t19"."graph_node_id",
          "t19"."source_graph_node_id",
          "t19"."captured_external_id",
          "t19"."graph_degree",
          "t19"."process_id",
          "t19"."op",
          "t19"."kind",
          COALESCE("t19"."source", 'kind ' || CAST("t19"."src_kind" AS TEXT)) AS "source"
        FROM (
          SELECT
            "t18"."run",
            "t18"."rank",
            "t18"."step",
            "t18"."id",
            "t18"."start_ns",
            "t18"."duration_ns",
            "t18"."device_id",
            "t18"."context_id",
            "t18"."stream_id",
            "t18"."correlation_id",
            "t18"."num_bytes",
            "t18"."copy_kind",
            "t18"."src_kind",
            "t18"."dst_kind",
            "t18"."is_async",
            "t18"."src_device_id",
            "t18"."src_context_id",
            "t18"."dst_device_id",
            "t18"."dst_context_id",
            "t18"."graph_id",
            "t18"."graph_node_id",
            "t18"."source_graph_node_id",
            "t18"."captured_external_id",
            "t18"."graph_degree",
            "t18"."process_id",
            "t18"."op",
            "t18"."kind",
            "t12"."source"
          FROM (
            SELECT
              "t15"."run",
              "t15"."rank",
              "t15"."step",
              "t15"."id",
              "t15"."start_ns",
              "t15"."duration_ns",
              "t15"."device_id",
              "t15"."context_id",
              "t15"."stream_id",
              "t15"."correlation_id",
              "t15"."num_bytes",
              "t15"."copy_kind",
              "t15"."src_kind",
              "t15"."dst_kind",
              "t15"."is_async",
              "t15"."src_device_id",
              "t15"."src_context_id",
              "t15"."dst_device_id",
              "t15"."dst_context_id",
              "t15"."graph_id",
              "t15"."graph_node_id",
              "t15"."source_graph_node_id",
              "t15"."captured_external_id",
              "t15"."graph_degree",
              "t15"."process_id",
              "t15"."op",
              COALESCE("t15"."kind", 'kind ' || CAST("t15"."copy_kind" AS TEXT)) AS "kind"
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
                "t5"."copy_kind",
                "t5"."src_kind",
                "t5"."dst_kind",
                "t5"."is_async",
                "t5"."src_device_id",
                "t5"."src_context_id",
                "t5"."dst_device_id",
                "t5"."dst_context_id",
                "t5"."graph_id",
                "t5"."graph_node_id",
                "t5"."source_graph_node_id",
                "t5"."captured_external_id",
                "t5"."graph_degree",
                "t5"."process_id",
                "t5"."op",
                "t13"."kind"
              FROM "copies" AS "t5"
              LEFT OUTER JOIN (
                SELECT
                  "t3"."id" AS "of_copy_kind",
                  "t3"."label" AS "kind"
                FROM "enum_copy_kind" AS "t3"
              ) AS "t13"
                ON "t5"."copy_kind" = "t13"."of_copy_kind"
            ) AS "t15"
          ) AS "t18"
          LEFT OUTER JOIN (
            SELECT
              "t1"."id" AS "of_src_kind",
              "t1"."label" AS "source"
            FROM "enum_memory_kind" AS "t1"
          ) AS "t12"
            ON "t18"."src_kind" = "t12"."of_src_kind"
        ) AS "t19"
      ) AS "t21"
      LEFT OUTER JOIN (
        SELECT
          "t1"."id" AS "of_dst_kind",
          "t1"."label" AS "target"
        FROM "enum_memory_kind" AS "t1"
      ) AS "t10"
        ON "t21"."dst_kind" = "t10"."of_dst_kind"
    ) AS "t22"
  ) AS "t23"
  UNION ALL
  SELECT
    *
  FROM (
    SELECT
      "t14"."run",
      "t14"."rank",
      "t14"."step",
      "t14"."device_id",
      'memset' AS "kind",
      '' AS "source",
      COALESCE("t14"."target", 'kind ' || CAST("t14"."memory_kind" AS TEXT)) AS "target",
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
        "t4"."value",
        "t4"."memory_kind",
        "t4"."is_async",
        "t4"."graph_id",
        "t4"."graph_node_id",
        "t4"."source_graph_node_id",
        "t4"."captured_external_id",
        "t4"."graph_degree",
        "t4"."process_id",
        "t4"."op",
        "t11"."target"
      FROM "memsets" AS "t4"
      LEFT OUTER JOIN (
        SELECT
          "t1"."id" AS "of_memory_kind",
          "t1"."label" AS "target"
        FROM "enum_memory_kind" AS "t1"
      ) AS "t11"
        ON "t4"."memory_kind" = "t11"."of_memory_kind"
    ) AS "t14"
  ) AS "t16"
) AS "t24"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6,
  7
