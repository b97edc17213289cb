WITH "t18" AS (
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
    "t10"."of_run",
    "t10"."of_rank",
    "t10"."of_step",
    "t10"."first_ns",
    "t10"."last_ns"
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
      "t15"."start_ns" + "t15"."duration_ns" AS "end_ns"
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
      ) AS "t11"
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
        ) AS "t12"
      ) AS "t14"
    ) AS "t15"
  ) AS "t17"
  INNER JOIN (
    SELECT
      "t0"."run" AS "of_run",
      "t0"."rank" AS "of_rank",
      "t0"."step" AS "of_step",
      "t0"."start_ns" AS "first_ns",
      "t0"."end_ns" AS "last_ns"
    FROM "steps" AS "t0"
  ) AS "t10"
    ON "t17"."run" = "t10"."of_run"
    AND "t17"."rank" = "t10"."of_rank"
    AND "t17"."step" = "t10"."of_step"
)
SELECT
  "t27"."run",
  "t27"."rank",
  "t27"."step",
  "t27"."device_id",
  "t27"."busy_ns",
  "t27"."compute_ns",
  "t27"."communication_ns",
  "t27"."copy_ns",
  "t27"."memset_ns",
  "t27"."graph_ns",
  "t27"."overlap_ns",
  "t27"."exposed_graph_ns",
  "t27"."exposed_communication_ns",
  "t27"."exposed_copy_ns",
  "t27"."exposed_memset_ns",
  "t27"."max_concurrency",
  "t27"."window_ns",
  "t27"."window_ns" - "t27"."busy_ns" AS "idle_ns"
FROM (
  SELECT
    "t26"."run",
    "t26"."rank",
    "t26"."step",
    "t26"."device_id",
    "t26"."busy_ns",
    "t26"."compute_ns",
    "t26"."communication_ns",
    "t26"."copy_ns",
    "t26"."memset_ns",
    "t26"."graph_ns",
    "t26"."overlap_ns",
    "t26"."exposed_graph_ns",
    "t26"."exposed_communication_ns",
    "t26"."exposed_copy_ns",
    "t26"."exposed_memset_ns",
    "t26"."max_concurrency",
    "t13"."window_ns"
  FROM (
    SELECT
      "t24"."run",
      "t24"."rank",
      "t24"."step",
      "t24"."device_id",
      SUM(CASE WHEN "t24"."running" > 0 THEN "t24"."length_ns" ELSE 0 END) AS "busy_ns",
      SUM(CASE WHEN "t24"."compute" > 0 THEN "t24"."length_ns" ELSE 0 END) AS "compute_ns",
      SUM(CASE WHEN "t24"."communication" > 0 THEN "t24"."length_ns" ELSE 0 END) AS "communication_ns",
      SUM(CASE WHEN "t24"."copy" > 0 THEN "t24"."length_ns" ELSE 0 END) AS "copy_ns",
      SUM(CASE WHEN "t24"."memset" > 0 THEN "t24"."length_ns" ELSE 0 END) AS "memset_ns",
      SUM(CASE WHEN "t24"."graph" > 0 THEN "t24"."length_ns" ELSE 0 END) AS "graph_ns",
      SUM(
        CASE
          WHEN (
            "t24"."compute" > 0
          ) AND (
            "t24"."communication" > 0
          )
          THEN "t24"."length_ns"
          ELSE 0
        END
      ) AS "overlap_ns",
      SUM(
        CASE
          WHEN (
            "t24"."graph" > 0
          ) AND NOT (
            "t24"."compute" > 0
          )
          THEN "t24"."length_ns"
          ELSE 0
        END
      ) AS "exposed_graph_ns",
      SUM(
        CASE
          WHEN (
            "t24"."communication" > 0
          )
          AND NOT (
            (
              "t24"."compute" > 0
            ) OR (
              "t24"."graph" > 0
            )
          )
          THEN "t24"."length_ns"
          ELSE 0
        END
      ) AS "exposed_communication_ns",
      SUM(
        CASE
          WHEN (
            "t24"."copy" > 0
          )
          AND NOT (
            (
              "t24"."compute" > 0
            )
            OR (
              "t24"."graph" > 0
            )
            OR (
              "t24"."communication" > 0
            )
          )
          THEN "t24"."length_ns"
          ELSE 0
        END
      ) AS "exposed_copy_ns",
      SUM(
        CASE
          WHEN (
            "t24"."memset" > 0
          )
          AND NOT (
            (
              "t24"."compute" > 0
            )
            OR (
              "t24"."graph" > 0
            )
            OR (
              "t24"."communication" > 0
            )
            OR (
              "t24"."copy" > 0
            )
          )
          THEN "t24"."length_ns"
          ELSE 0
        END
      ) AS "exposed_memset_ns",
      MAX("t24"."running") AS "max_concurrency"
    FROM (
      SELECT
        "t24"."length_ns",
        "t24"."compute",
        "t24"."communication",
        "t24"."copy",
        "t24"."memset",
        "t24"."graph",
        "t24"."running",
        "t24"."run",
        "t24"."rank",
        "t24"."step",
        "t24"."device_id"
      FROM (
        SELECT
          "t23"."run",
          "t23"."rank",
          "t23"."step",
          "t23"."device_id",
          "t23"."length_ns",
          "t23"."compute",
          "t23"."communication",
          "t23"."copy",
          "t23"."memset",
          "t23"."graph",
          CASE
            WHEN "t23"."length_ns" > 0
            THEN "t23"."compute" + "t23"."communication" + "t23"."copy" + "t23"."memset" + "t23"."graph"
            ELSE 0
          END AS "running"
        FROM (
          SELECT
            "t22"."run",
            "t22"."rank",
            "t22"."step",
            "t22"."device_id",
            COALESCE(
              LEAD("t22"."at_ns") OVER (
                PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
                ORDER BY "t22"."at_ns" ASC
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ),
              "t22"."at_ns"
            ) - "t22"."at_ns" AS "length_ns",
            SUM("t22"."compute") OVER (
              PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
              ORDER BY "t22"."at_ns" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "compute",
            SUM("t22"."communication") OVER (
              PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
              ORDER BY "t22"."at_ns" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "communication",
            SUM("t22"."copy") OVER (
              PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
              ORDER BY "t22"."at_ns" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "copy",
            SUM("t22"."memset") OVER (
              PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
              ORDER BY "t22"."at_ns" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "memset",
            SUM("t22"."graph") OVER (
              PARTITION BY "t22"."run", "t22"."rank", "t22"."step", "t22"."device_id"
              ORDER BY "t22"."at_ns" ASC
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS "graph"
          FROM (
            SELECT
              *
            FROM (
              SELECT
                "t19"."run",
                "t19"."rank",
                "t19"."step",
                "t19"."device_id",
                GREATEST("t19"."start_ns", "t19"."first_ns") AS "at_ns",
                CASE WHEN "t19"."class" = 'compute' THEN 1 ELSE 0 END AS "compute",
                CASE WHEN "t19"."class" = 'communication' THEN 1 ELSE 0 END AS "communication",
                CASE WHEN "t19"."class" = 'copy' THEN 1 ELSE 0 END AS "copy",
                CASE WHEN "t19"."class" = 'memset' THEN 1 ELSE 0 END AS "memset",
                CASE WHEN "t19"."class" = 'graph' THEN 1 ELSE 0 END AS "graph"
              FROM "t18" AS "t19"
              WHERE
                LEAST("t19"."end_ns", "t19"."last_ns") >= GREATEST("t19"."start_ns", "t19"."first_ns")
            ) AS "t20"
            UNION ALL
            SELECT
              *
            FROM (
              SELECT
                "t19"."run",
                "t19"."rank",
                "t19"."step",
                "t19"."device_id",
                LEAST("t19"."end_ns", "t19"."last_ns") AS "at_ns",
                CASE WHEN "t19"."class" = 'compute' THEN -1 ELSE 0 END AS "compute",
                CASE WHEN "t19"."class" = 'communication' THEN -1 ELSE 0 END AS "communication",
                CASE WHEN "t19"."class" = 'copy' THEN -1 ELSE 0 END AS "copy",
                CASE WHEN "t19"."class" = 'memset' THEN -1 ELSE 0 END AS "memset",
                CASE WHEN "t19"."class" = 'graph' THEN -1 ELSE 0 END AS "graph"
              FROM "t18" AS "t19"
              WHERE
                LEAST("t19"."end_ns", "t19"."last_ns") >= GREATEST("t19"."start_ns", "t19"."first_ns")
            ) AS "t21"
          ) AS "t22"
        ) AS "t23"
      ) AS "t24"
    ) AS t24
    GROUP BY
      "t24"."run",
      "t24"."rank",
      "t24"."step",
      "t24"."device_id"
  ) AS "t26"
  INNER JOIN (
    SELECT
      "t0"."run" AS "of_run",
      "t0"."rank" AS "of_rank",
      "t0"."step" AS "of_step",
      "t0"."end_ns" - "t0"."start_ns" AS "window_ns"
    FROM "steps" AS "t0"
  ) AS "t13"
    ON "t26"."run" = "t13"."of_run"
    AND "t26"."rank" = "t13"."of_rank"
    AND "t26"."step" = "t13"."of_step"
) AS "t27"
