WITH "t16" AS (
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
)
SELECT
  "t22"."run",
  "t22"."rank",
  "t22"."step",
  "t22"."device_id",
  "t22"."context_id",
  "t22"."stream_id",
  MAX("t22"."at_ns") - MIN("t22"."at_ns") AS "window_ns",
  MAX("t22"."depth") AS "max_depth"
FROM (
  SELECT
    "t21"."run",
    "t21"."rank",
    "t21"."step",
    "t21"."device_id",
    "t21"."context_id",
    "t21"."stream_id",
    "t21"."at_ns",
    "t21"."change",
    SUM("t21"."change") OVER (
      PARTITION BY "t21"."run", "t21"."rank", "t21"."step", "t21"."device_id", "t21"."context_id", "t21"."stream_id"
      ORDER BY "t21"."at_ns" ASC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS "depth"
  FROM (
    SELECT
      "t20"."run",
      "t20"."rank",
      "t20"."step",
      "t20"."device_id",
      "t20"."context_id",
      "t20"."stream_id",
      "t20"."at_ns",
      SUM("t20"."change") AS "change"
    FROM (
      SELECT
        *
      FROM (
        SELECT
          "t17"."run",
          "t17"."rank",
          "t17"."step",
          "t17"."device_id",
          "t17"."context_id",
          "t17"."stream_id",
          "t17"."call_ns" AS "at_ns",
          1 AS "change"
        FROM "t16" AS "t17"
        WHERE
          "t17"."call_ns" <= "t17"."start_ns"
      ) AS "t18"
      UNION ALL
      SELECT
        *
      FROM (
        SELECT
          "t17"."run",
          "t17"."rank",
          "t17"."step",
          "t17"."device_id",
          "t17"."context_id",
          "t17"."stream_id",
          "t17"."start_ns" AS "at_ns",
          -1 AS "change"
        FROM "t16" AS "t17"
        WHERE
          "t17"."call_ns" <= "t17"."start_ns"
      ) AS "t19"
    ) AS "t20"
    GROUP BY
      1,
      2,
      3,
      4,
      5,
      6,
      7
  ) AS "t21"
) AS "t22"
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6
