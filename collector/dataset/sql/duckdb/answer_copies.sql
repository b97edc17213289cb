SELECT
  "t24"."run",
  "t24"."rank",
  "t24"."step",
  "t24"."device_id",
  "t24"."kind",
  "t24"."source",
  "t24"."target",
  COUNT(*) AS "count",
  SUM(CASE WHEN "t24"."num_bytes" = 0 THEN 1 ELSE 0 END) AS "unknown_sizes",
  SUM("t24"."num_bytes") AS "num_bytes",
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
      "t22"."target",
      "t22"."num_bytes",
      "t22"."duration_ns"
    FROM (
      SELECT
        "t21".*
        EXCLUDE ("target_id")
      FROM (
        SELECT
          "t20"."run",
          "t20"."rank",
          "t20"."step",
          "t20"."id",
          "t20"."start_ns",
          "t20"."duration_ns",
          "t20"."device_id",
          "t20"."context_id",
          "t20"."stream_id",
          "t20"."correlation_id",
          "t20"."num_bytes",
          "t20"."copy_kind",
          "t20"."src_kind",
          "t20"."dst_kind",
          "t20"."is_async",
          "t20"."src_device_id",
          "t20"."src_context_id",
          "t20"."dst_device_id",
          "t20"."dst_context_id",
          "t20"."graph_id",
          "t20"."graph_node_id",
          "t20"."process_id",
          "t20"."op",
          "t20"."kind",
          "t20"."source",
          "t9"."target_id",
          "t9"."target"
        FROM (
          SELECT
            "t18".*
            EXCLUDE ("source_id")
          FROM (
            SELECT
              "t16"."run",
              "t16"."rank",
              "t16"."step",
              "t16"."id",
              "t16"."start_ns",
              "t16"."duration_ns",
              "t16"."device_id",
              "t16"."context_id",
              "t16"."stream_id",
              "t16"."correlation_id",
              "t16"."num_bytes",
              "t16"."copy_kind",
              "t16"."src_kind",
              "t16"."dst_kind",
              "t16"."is_async",
              "t16"."src_device_id",
              "t16"."src_context_id",
              "t16"."dst_device_id",
              "t16"."dst_context_id",
              "t16"."graph_id",
              "t16"."graph_node_id",
              "t16"."process_id",
              "t16"."op",
              "t16"."kind",
              "t10"."source_id",
              "t10"."source"
            FROM (
              SELECT
                "t13".*
                EXCLUDE ("kind_id")
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
                  "t5"."process_id",
                  "t5"."op",
                  "t11"."kind_id",
                  "t11"."kind"
                FROM "copies" AS "t5"
                INNER JOIN (
                  SELECT
                    "t3"."id" AS "kind_id",
                    "t3"."label" AS "kind"
                  FROM "enum_copy_kind" AS "t3"
                ) AS "t11"
                  ON "t5"."copy_kind" = "t11"."kind_id"
              ) AS "t13"
            ) AS "t16"
            INNER JOIN (
              SELECT
                "t1"."id" AS "source_id",
                "t1"."label" AS "source"
              FROM "enum_memory_kind" AS "t1"
            ) AS "t10"
              ON "t16"."src_kind" = "t10"."source_id"
          ) AS "t18"
        ) AS "t20"
        INNER JOIN (
          SELECT
            "t1"."id" AS "target_id",
            "t1"."label" AS "target"
          FROM "enum_memory_kind" AS "t1"
        ) AS "t9"
          ON "t20"."dst_kind" = "t9"."target_id"
      ) AS "t21"
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
      "t14"."target",
      "t14"."num_bytes",
      "t14"."duration_ns"
    FROM (
      SELECT
        "t12".*
        EXCLUDE ("target_id")
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
          "t4"."process_id",
          "t4"."op",
          "t9"."target_id",
          "t9"."target"
        FROM "memsets" AS "t4"
        INNER JOIN (
          SELECT
            "t1"."id" AS "target_id",
            "t1"."label" AS "target"
          FROM "enum_memory_kind" AS "t1"
        ) AS "t9"
          ON "t4"."memory_kind" = "t9"."target_id"
      ) AS "t12"
    ) AS "t14"
  ) AS "t17"
) AS "t24"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6,
  7
