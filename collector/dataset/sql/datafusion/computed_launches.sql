SELECT
  "t18"."run",
  "t18"."rank",
  "t18"."step",
  "t18"."api",
  COUNT(*) AS "calls",
  SUM("t18"."activities") AS "activities",
  SUM("t18"."api_ns") AS "api_ns",
  MIN("t18"."min_delay_ns") AS "min_delay_ns",
  MAX("t18"."max_delay_ns") AS "max_delay_ns",
  MIN("t18"."min_queue_ns") AS "min_queue_ns",
  GREATEST(MAX("t18"."max_queue_ns"), 0) AS "max_queue_ns"
FROM (
  SELECT
    "t18"."api_id",
    "t18"."activities",
    "t18"."api_ns",
    "t18"."min_delay_ns",
    "t18"."max_delay_ns",
    "t18"."min_queue_ns",
    "t18"."max_queue_ns",
    "t18"."run",
    "t18"."rank",
    "t18"."step",
    "t18"."api"
  FROM (
    SELECT
      "t17"."run",
      "t17"."rank",
      "t17"."step",
      "t17"."api",
      "t17"."api_id",
      COUNT(*) AS "activities",
      MAX("t17"."api_ns") AS "api_ns",
      MIN("t17"."delay_ns") AS "min_delay_ns",
      MAX("t17"."delay_ns") AS "max_delay_ns",
      MIN("t17"."since_ns") AS "min_queue_ns",
      MAX("t17"."since_ns") AS "max_queue_ns"
    FROM (
      SELECT
        "t17"."device_id",
        "t17"."context_id",
        "t17"."stream_id",
        "t17"."correlation_id",
        "t17"."start_ns",
        "t17"."duration_ns",
        "t17"."class",
        "t17"."end_ns",
        "t17"."call_ns",
        "t17"."api_ns",
        "t17"."delay_ns",
        "t17"."since_ns",
        "t17"."run",
        "t17"."rank",
        "t17"."step",
        "t17"."api",
        "t17"."api_id"
      FROM (
        SELECT
          "t16"."run",
          "t16"."rank",
          "t16"."step",
          "t16"."device_id",
          "t16"."context_id",
          "t16"."stream_id",
          "t16"."correlation_id",
          "t16"."start_ns",
          "t16"."duration_ns",
          "t16"."class",
          "t16"."end_ns",
          "t16"."api",
          "t16"."api_id",
          "t16"."call_ns",
          "t16"."api_ns",
          "t16"."start_ns" - "t16"."call_ns" AS "delay_ns",
          (
            "t16"."start_ns" - "t16"."call_ns"
          ) - "t16"."api_ns" AS "since_ns"
        FROM (
          SELECT
            "t15"."run",
            "t15"."rank",
            "t15"."step",
            "t15"."device_id",
            "t15"."context_id",
            "t15"."stream_id",
            "t15"."correlation_id",
            "t15"."start_ns",
            "t15"."duration_ns",
            "t15"."class",
            "t15"."end_ns",
            "t9"."api",
            "t9"."api_id",
            "t9"."call_ns",
            "t9"."api_ns"
          FROM (
            SELECT
              "t13"."run",
              "t13"."rank",
              "t13"."step",
              "t13"."device_id",
              "t13"."context_id",
              "t13"."stream_id",
              "t13"."correlation_id",
              "t13"."start_ns",
              "t13"."duration_ns",
              "t13"."class",
              "t13"."start_ns" + "t13"."duration_ns" AS "end_ns"
            FROM (
              SELECT
                *
              FROM (
                SELECT
                  *
                FROM (
                  SELECT
                    "t1"."run",
                    "t1"."rank",
                    "t1"."step",
                    "t1"."device_id",
                    "t1"."context_id",
                    "t1"."stream_id",
                    "t1"."correlation_id",
                    "t1"."start_ns",
                    "t1"."duration_ns",
                    "t1"."class"
                  FROM "kernels" AS "t1"
                ) AS "t6"
                UNION ALL
                SELECT
                  *
                FROM (
                  SELECT
                    "t2"."run",
                    "t2"."rank",
                    "t2"."step",
                    "t2"."device_id",
                    "t2"."context_id",
                    "t2"."stream_id",
                    "t2"."correlation_id",
                    "t2"."start_ns",
                    "t2"."duration_ns",
                    'copy' AS "class"
                  FROM "copies" AS "t2"
                ) AS "t7"
              ) AS "t10"
              UNION ALL
              SELECT
                *
              FROM (
                SELECT
                  *
                FROM (
                  SELECT
                    "t3"."run",
                    "t3"."rank",
                    "t3"."step",
                    "t3"."device_id",
                    "t3"."context_id",
                    "t3"."stream_id",
                    "t3"."correlation_id",
                    "t3"."start_ns",
                    "t3"."duration_ns",
                    'memset' AS "class"
                  FROM "memsets" AS "t3"
                ) AS "t8"
                UNION ALL
                SELECT
                  *
                FROM (
                  SELECT
                    "t4"."run",
                    "t4"."rank",
                    "t4"."step",
                    "t4"."device_id",
                    "t4"."context_id",
                    "t4"."stream_id",
                    "t4"."correlation_id",
                    "t4"."start_ns",
                    "t4"."duration_ns",
                    'graph' AS "class"
                  FROM "graph_launches" AS "t4"
                  WHERE
                    "t4"."graph_degree" = 4
                ) AS "t11"
              ) AS "t12"
            ) AS "t13"
          ) AS "t15"
          INNER JOIN (
            SELECT
              "t0"."api",
              "t0"."id" AS "api_id",
              "t0"."start_ns" AS "call_ns",
              "t0"."duration_ns" AS "api_ns",
              "t0"."correlation_id" AS "of_correlation_id",
              "t0"."run" AS "of_run",
              "t0"."rank" AS "of_rank",
              "t0"."step" AS "of_step"
            FROM "api_calls" AS "t0"
            WHERE
              "t0"."is_outer"
          ) AS "t9"
            ON "t15"."run" = "t9"."of_run"
            AND "t15"."rank" = "t9"."of_rank"
            AND "t15"."step" = "t9"."of_step"
            AND "t15"."correlation_id" = "t9"."of_correlation_id"
        ) AS "t16"
      ) AS "t17"
    ) AS t17
    GROUP BY
      "t17"."run",
      "t17"."rank",
      "t17"."step",
      "t17"."api",
      "t17"."api_id"
  ) AS "t18"
) AS t18
GROUP BY
  "t18"."run",
  "t18"."rank",
  "t18"."step",
  "t18"."api"
