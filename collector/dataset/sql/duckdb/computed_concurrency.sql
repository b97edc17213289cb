WITH "t15" AS (
  SELECT
    "t14"."run",
    "t14"."rank",
    "t14"."step",
    "t14"."device_id",
    "t14"."context_id",
    "t14"."stream_id",
    "t14"."correlation_id",
    "t14"."start_ns",
    "t14"."duration_ns",
    "t14"."class",
    "t14"."end_ns",
    "t9"."of_run",
    "t9"."of_rank",
    "t9"."of_step",
    "t9"."first_ns",
    "t9"."last_ns"
  FROM (
    SELECT
      "t12"."run",
      "t12"."rank",
      "t12"."step",
      "t12"."device_id",
      "t12"."context_id",
      "t12"."stream_id",
      "t12"."correlation_id",
      "t12"."start_ns",
      "t12"."duration_ns",
      "t12"."class",
      "t12"."start_ns" + "t12"."duration_ns" AS "end_ns"
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
          'memset' AS "class"
        FROM "memsets" AS "t1"
      ) AS "t5"
      UNION ALL
      SELECT
        *
      FROM (
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
            "t2"."class"
          FROM "kernels" AS "t2"
        ) AS "t6"
        UNION ALL
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
            'copy' AS "class"
          FROM "copies" AS "t3"
        ) AS "t7"
      ) AS "t10"
    ) AS "t12"
  ) AS "t14"
  INNER JOIN (
    SELECT
      "t0"."run" AS "of_run",
      "t0"."rank" AS "of_rank",
      "t0"."step" AS "of_step",
      "t0"."start_ns" AS "first_ns",
      "t0"."end_ns" AS "last_ns"
    FROM "steps" AS "t0"
  ) AS "t9"
    ON "t14"."run" = "t9"."of_run"
    AND "t14"."rank" = "t9"."of_rank"
    AND "t14"."step" = "t9"."of_step"
)
SELECT
  "t28"."run",
  "t28"."rank",
  "t28"."step",
  "t28"."device_id",
  "t28"."running",
  SUM("t28"."length_ns") AS "duration_ns"
FROM (
  SELECT
    *
  FROM (
    SELECT
      "t22"."run",
      "t22"."rank",
      "t22"."step",
      "t22"."device_id",
      CASE
        WHEN "t22"."length_ns" > 0
        THEN "t22"."compute" + "t22"."communication" + "t22"."copy" + "t22"."memset"
        ELSE 0
      END AS "running",
      "t22"."length_ns"
    FROM (
      SELECT
        "t20"."run",
        "t20"."rank",
        "t20"."step",
        "t20"."device_id",
        COALESCE(
          LEAD("t20"."at_ns") OVER (
            PARTITION BY "t20"."run", "t20"."rank", "t20"."step", "t20"."device_id"
            ORDER BY "t20"."at_ns" ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ),
          "t20"."at_ns"
        ) - "t20"."at_ns" AS "length_ns",
        SUM("t20"."compute") OVER (
          PARTITION BY "t20"."run", "t20"."rank", "t20"."step", "t20"."device_id"
          ORDER BY "t20"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "compute",
        SUM("t20"."communication") OVER (
          PARTITION BY "t20"."run", "t20"."rank", "t20"."step", "t20"."device_id"
          ORDER BY "t20"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "communication",
        SUM("t20"."copy") OVER (
          PARTITION BY "t20"."run", "t20"."rank", "t20"."step", "t20"."device_id"
          ORDER BY "t20"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "copy",
        SUM("t20"."memset") OVER (
          PARTITION BY "t20"."run", "t20"."rank", "t20"."step", "t20"."device_id"
          ORDER BY "t20"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "memset"
      FROM (
        SELECT
          *
        FROM (
          SELECT
            "t16"."run",
            "t16"."rank",
            "t16"."step",
            "t16"."device_id",
            GREATEST("t16"."start_ns", "t16"."first_ns") AS "at_ns",
            CASE WHEN "t16"."class" = 'compute' THEN 1 ELSE 0 END AS "compute",
            CASE WHEN "t16"."class" = 'communication' THEN 1 ELSE 0 END AS "communication",
            CASE WHEN "t16"."class" = 'copy' THEN 1 ELSE 0 END AS "copy",
            CASE WHEN "t16"."class" = 'memset' THEN 1 ELSE 0 END AS "memset"
          FROM "t15" AS "t16"
          WHERE
            LEAST("t16"."end_ns", "t16"."last_ns") >= GREATEST("t16"."start_ns", "t16"."first_ns")
        ) AS "t18"
        UNION ALL
        SELECT
          *
        FROM (
          SELECT
            "t16"."run",
            "t16"."rank",
            "t16"."step",
            "t16"."device_id",
            LEAST("t16"."end_ns", "t16"."last_ns") AS "at_ns",
            CASE WHEN "t16"."class" = 'compute' THEN -1 ELSE 0 END AS "compute",
            CASE WHEN "t16"."class" = 'communication' THEN -1 ELSE 0 END AS "communication",
            CASE WHEN "t16"."class" = 'copy' THEN -1 ELSE 0 END AS "copy",
            CASE WHEN "t16"."class" = 'memset' THEN -1 ELSE 0 END AS "memset"
          FROM "t15" AS "t16"
          WHERE
            LEAST("t16"."end_ns", "t16"."last_ns") >= GREATEST("t16"."start_ns", "t16"."first_ns")
        ) AS "t19"
      ) AS "t20"
    ) AS "t22"
    WHERE
      CASE
        WHEN "t22"."length_ns" > 0
        THEN "t22"."compute" + "t22"."communication" + "t22"."copy" + "t22"."memset"
        ELSE 0
      END > 0
  ) AS "t25"
  UNION ALL
  SELECT
    *
  FROM (
    SELECT
      "t26"."run",
      "t26"."rank",
      "t26"."step",
      "t26"."device_id",
      0 AS "running",
      "t26"."window_ns" - "t26"."busy_ns" AS "length_ns"
    FROM (
      SELECT
        "t24"."run",
        "t24"."rank",
        "t24"."step",
        "t24"."device_id",
        "t24"."busy_ns",
        "t24"."activities",
        "t11"."window_ns"
      FROM (
        SELECT
          "t21"."run",
          "t21"."rank",
          "t21"."step",
          "t21"."device_id",
          SUM(GREATEST("t21"."end_ns" - GREATEST("t21"."start_ns", "t21"."covered_ns"), 0)) AS "busy_ns",
          COUNT(*) AS "activities"
        FROM (
          SELECT
            "t17"."run",
            "t17"."rank",
            "t17"."step",
            "t17"."device_id",
            "t17"."context_id",
            "t17"."stream_id",
            "t17"."correlation_id",
            "t17"."start_ns",
            "t17"."duration_ns",
            "t17"."class",
            "t17"."end_ns",
            "t17"."of_run",
            "t17"."of_rank",
            "t17"."of_step",
            "t17"."first_ns",
            "t17"."last_ns",
            COALESCE(
              MAX("t17"."end_ns") OVER (
                PARTITION BY "t17"."run", "t17"."rank", "t17"."step", "t17"."device_id"
                ORDER BY "t17"."start_ns" ASC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 preceding
              ),
              "t17"."start_ns"
            ) AS "covered_ns"
          FROM (
            SELECT
              "t16"."run",
              "t16"."rank",
              "t16"."step",
              "t16"."device_id",
              "t16"."context_id",
              "t16"."stream_id",
              "t16"."correlation_id",
              GREATEST("t16"."start_ns", "t16"."first_ns") AS "start_ns",
              "t16"."duration_ns",
              "t16"."class",
              LEAST("t16"."end_ns", "t16"."last_ns") AS "end_ns",
              "t16"."of_run",
              "t16"."of_rank",
              "t16"."of_step",
              "t16"."first_ns",
              "t16"."last_ns"
            FROM "t15" AS "t16"
            WHERE
              LEAST("t16"."end_ns", "t16"."last_ns") >= GREATEST("t16"."start_ns", "t16"."first_ns")
          ) AS "t17"
        ) AS "t21"
        GROUP BY
          1,
          2,
          3,
          4
      ) AS "t24"
      INNER JOIN (
        SELECT
          "t0"."run" AS "of_run",
          "t0"."rank" AS "of_rank",
          "t0"."step" AS "of_step",
          "t0"."end_ns" - "t0"."start_ns" AS "window_ns"
        FROM "steps" AS "t0"
      ) AS "t11"
        ON "t24"."run" = "t11"."of_run"
        AND "t24"."rank" = "t11"."of_rank"
        AND "t24"."step" = "t11"."of_step"
    ) AS "t26"
    WHERE
      (
        "t26"."window_ns" - "t26"."busy_ns"
      ) > 0
  ) AS "t27"
) AS "t28"
GROUP BY
  1,
  2,
  3,
  4,
  5
