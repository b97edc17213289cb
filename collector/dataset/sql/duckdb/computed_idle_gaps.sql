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
    "t9"."of_run",
    "t9"."of_rank",
    "t9"."of_step",
    "t9"."first_ns",
    "t9"."last_ns"
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
      "t0"."run" AS "of_run",
      "t0"."rank" AS "of_rank",
      "t0"."step" AS "of_step",
      "t0"."start_ns" AS "first_ns",
      "t0"."end_ns" AS "last_ns"
    FROM "steps" AS "t0"
  ) AS "t9"
    ON "t15"."run" = "t9"."of_run"
    AND "t15"."rank" = "t9"."of_rank"
    AND "t15"."step" = "t9"."of_step"
)
SELECT
  "t23"."run",
  "t23"."rank",
  "t23"."step",
  "t23"."device_id",
  "t23"."covered_ns" - "t23"."first_ns" AS "start_ns",
  "t23"."start_ns" - "t23"."first_ns" AS "end_ns",
  "t23"."start_ns" - "t23"."covered_ns" AS "idle_ns"
FROM (
  SELECT
    "t22"."run",
    "t22"."rank",
    "t22"."step",
    "t22"."device_id",
    "t22"."start_ns",
    "t22"."end_ns",
    "t22"."first_ns",
    COALESCE(
      MAX("t22"."end_ns") OVER (
        PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
        ORDER BY "t22"."start_ns" ASC, "t22"."end_ns" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 preceding
      ),
      "t22"."first_ns"
    ) AS "covered_ns"
  FROM (
    SELECT
      *
    FROM (
      SELECT
        "t17"."run",
        "t17"."rank",
        "t17"."step",
        "t17"."device_id",
        GREATEST("t17"."start_ns", "t17"."first_ns") AS "start_ns",
        LEAST("t17"."end_ns", "t17"."last_ns") AS "end_ns",
        "t17"."first_ns"
      FROM "t16" AS "t17"
      WHERE
        LEAST("t17"."end_ns", "t17"."last_ns") >= GREATEST("t17"."start_ns", "t17"."first_ns")
    ) AS "t18"
    UNION ALL
    SELECT
      *
    FROM (
      SELECT
        "t20"."run",
        "t20"."rank",
        "t20"."step",
        "t20"."device_id",
        "t20"."last_ns" AS "start_ns",
        "t20"."last_ns" AS "end_ns",
        "t20"."first_ns"
      FROM (
        SELECT
          "t19"."run",
          "t19"."rank",
          "t19"."step",
          "t19"."device_id",
          MIN("t19"."first_ns") AS "first_ns",
          MIN("t19"."last_ns") AS "last_ns"
        FROM (
          SELECT
            "t17"."run",
            "t17"."rank",
            "t17"."step",
            "t17"."device_id",
            "t17"."context_id",
            "t17"."stream_id",
            "t17"."correlation_id",
            GREATEST("t17"."start_ns", "t17"."first_ns") AS "start_ns",
            "t17"."duration_ns",
            "t17"."class",
            LEAST("t17"."end_ns", "t17"."last_ns") AS "end_ns",
            "t17"."of_run",
            "t17"."of_rank",
            "t17"."of_step",
            "t17"."first_ns",
            "t17"."last_ns"
          FROM "t16" AS "t17"
          WHERE
            LEAST("t17"."end_ns", "t17"."last_ns") >= GREATEST("t17"."start_ns", "t17"."first_ns")
        ) AS "t19"
        GROUP BY
          1,
          2,
          3,
          4
      ) AS "t20"
    ) AS "t21"
  ) AS "t22"
) AS "t23"
WHERE
  "t23"."start_ns" > "t23"."covered_ns"
