WITH "t13" AS (
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
    "t12"."end_ns",
    "t8"."of_run",
    "t8"."of_rank",
    "t8"."of_step",
    "t8"."first_ns",
    "t8"."last_ns"
  FROM (
    SELECT
      "t10"."run",
      "t10"."rank",
      "t10"."step",
      "t10"."device_id",
      "t10"."context_id",
      "t10"."stream_id",
      "t10"."correlation_id",
      "t10"."start_ns",
      "t10"."duration_ns",
      "t10"."class",
      "t10"."start_ns" + "t10"."duration_ns" AS "end_ns"
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
      ) AS "t9"
    ) AS "t10"
  ) AS "t12"
  INNER JOIN (
    SELECT
      "t0"."run" AS "of_run",
      "t0"."rank" AS "of_rank",
      "t0"."step" AS "of_step",
      "t0"."start_ns" AS "first_ns",
      "t0"."end_ns" AS "last_ns"
    FROM "steps" AS "t0"
  ) AS "t8"
    ON "t12"."run" = "t8"."of_run"
    AND "t12"."rank" = "t8"."of_rank"
    AND "t12"."step" = "t8"."of_step"
)
SELECT
  "t19"."run",
  "t19"."rank",
  "t19"."step",
  "t19"."device_id",
  SUM(CASE WHEN "t19"."running" > 0 THEN "t19"."length_ns" ELSE 0 END) AS "busy_ns",
  SUM(CASE WHEN "t19"."compute" > 0 THEN "t19"."length_ns" ELSE 0 END) AS "compute_ns",
  SUM(
    CASE
      WHEN (
        "t19"."communication" > 0
      ) AND NOT (
        "t19"."compute" > 0
      )
      THEN "t19"."length_ns"
      ELSE 0
    END
  ) AS "exposed_communication_ns",
  SUM(
    CASE
      WHEN (
        "t19"."copy" > 0
      )
      AND NOT (
        "t19"."compute" > 0
      )
      AND NOT (
        "t19"."communication" > 0
      )
      THEN "t19"."length_ns"
      ELSE 0
    END
  ) AS "exposed_copy_ns",
  SUM(
    CASE
      WHEN (
        "t19"."memset" > 0
      )
      AND NOT (
        "t19"."compute" > 0
      )
      AND NOT (
        "t19"."communication" > 0
      )
      AND NOT (
        "t19"."copy" > 0
      )
      THEN "t19"."length_ns"
      ELSE 0
    END
  ) AS "exposed_memset_ns",
  SUM(CASE WHEN "t19"."communication" > 0 THEN "t19"."length_ns" ELSE 0 END) AS "communication_ns",
  SUM(CASE WHEN "t19"."copy" > 0 THEN "t19"."length_ns" ELSE 0 END) AS "copy_ns",
  SUM(
    CASE
      WHEN (
        "t19"."compute" > 0
      ) AND (
        "t19"."communication" > 0
      )
      THEN "t19"."length_ns"
      ELSE 0
    END
  ) AS "compute_communication_ns",
  SUM(
    CASE
      WHEN (
        "t19"."compute" > 0
      ) AND (
        "t19"."copy" > 0
      )
      THEN "t19"."length_ns"
      ELSE 0
    END
  ) AS "compute_copy_ns",
  SUM(
    CASE
      WHEN (
        "t19"."communication" > 0
      ) AND (
        "t19"."copy" > 0
      )
      THEN "t19"."length_ns"
      ELSE 0
    END
  ) AS "communication_copy_ns"
FROM (
  SELECT
    "t19"."length_ns",
    "t19"."compute",
    "t19"."communication",
    "t19"."copy",
    "t19"."memset",
    "t19"."running",
    "t19"."run",
    "t19"."rank",
    "t19"."step",
    "t19"."device_id"
  FROM (
    SELECT
      "t18"."run",
      "t18"."rank",
      "t18"."step",
      "t18"."device_id",
      "t18"."length_ns",
      "t18"."compute",
      "t18"."communication",
      "t18"."copy",
      "t18"."memset",
      CASE
        WHEN "t18"."length_ns" > 0
        THEN "t18"."compute" + "t18"."communication" + "t18"."copy" + "t18"."memset"
        ELSE 0
      END AS "running"
    FROM (
      SELECT
        "t17"."run",
        "t17"."rank",
        "t17"."step",
        "t17"."device_id",
        COALESCE(
          LEAD("t17"."at_ns") OVER (
            PARTITION BY "t17"."run", "t17"."rank", "t17"."step", "t17"."device_id"
            ORDER BY "t17"."at_ns" ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ),
          "t17"."at_ns"
        ) - "t17"."at_ns" AS "length_ns",
        SUM("t17"."compute") OVER (
          PARTITION BY "t17"."run", "t17"."rank", "t17"."step", "t17"."device_id"
          ORDER BY "t17"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "compute",
        SUM("t17"."communication") OVER (
          PARTITION BY "t17"."run", "t17"."rank", "t17"."step", "t17"."device_id"
          ORDER BY "t17"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "communication",
        SUM("t17"."copy") OVER (
          PARTITION BY "t17"."run", "t17"."rank", "t17"."step", "t17"."device_id"
          ORDER BY "t17"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "copy",
        SUM("t17"."memset") OVER (
          PARTITION BY "t17"."run", "t17"."rank", "t17"."step", "t17"."device_id"
          ORDER BY "t17"."at_ns" ASC
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS "memset"
      FROM (
        SELECT
          *
        FROM (
          SELECT
            "t14"."run",
            "t14"."rank",
            "t14"."step",
            "t14"."device_id",
            GREATEST("t14"."start_ns", "t14"."first_ns") AS "at_ns",
            CASE WHEN "t14"."class" = 'compute' THEN 1 ELSE 0 END AS "compute",
            CASE WHEN "t14"."class" = 'communication' THEN 1 ELSE 0 END AS "communication",
            CASE WHEN "t14"."class" = 'copy' THEN 1 ELSE 0 END AS "copy",
            CASE WHEN "t14"."class" = 'memset' THEN 1 ELSE 0 END AS "memset"
          FROM "t13" AS "t14"
          WHERE
            LEAST("t14"."end_ns", "t14"."last_ns") >= GREATEST("t14"."start_ns", "t14"."first_ns")
        ) AS "t15"
        UNION ALL
        SELECT
          *
        FROM (
          SELECT
            "t14"."run",
            "t14"."rank",
            "t14"."step",
            "t14"."device_id",
            LEAST("t14"."end_ns", "t14"."last_ns") AS "at_ns",
            CASE WHEN "t14"."class" = 'compute' THEN -1 ELSE 0 END AS "compute",
            CASE WHEN "t14"."class" = 'communication' THEN -1 ELSE 0 END AS "communication",
            CASE WHEN "t14"."class" = 'copy' THEN -1 ELSE 0 END AS "copy",
            CASE WHEN "t14"."class" = 'memset' THEN -1 ELSE 0 END AS "memset"
          FROM "t13" AS "t14"
          WHERE
            LEAST("t14"."end_ns", "t14"."last_ns") >= GREATEST("t14"."start_ns", "t14"."first_ns")
        ) AS "t16"
      ) AS "t17"
    ) AS "t18"
  ) AS "t19"
) AS t19
GROUP BY
  "t19"."run",
  "t19"."rank",
  "t19"."step",
  "t19"."device_id"
