SELECT
  "t2"."run",
  "t2"."rank",
  "t2"."step",
  "t2"."name",
  "t2"."count",
  "t2"."total_ns",
  "t2"."min_ns",
  "t2"."max_ns",
  "t5"."median_ns"
FROM (
  SELECT
    "t0"."run",
    "t0"."rank",
    "t0"."step",
    "t0"."name",
    COUNT(*) AS "count",
    SUM("t0"."duration_ns") AS "total_ns",
    MIN("t0"."duration_ns") AS "min_ns",
    MAX("t0"."duration_ns") AS "max_ns"
  FROM (
    SELECT
      "t0"."id",
      "t0"."start_ns",
      "t0"."duration_ns",
      "t0"."device_id",
      "t0"."context_id",
      "t0"."stream_id",
      "t0"."correlation_id",
      "t0"."grid_x",
      "t0"."grid_y",
      "t0"."grid_z",
      "t0"."block_x",
      "t0"."block_y",
      "t0"."block_z",
      "t0"."cluster_x",
      "t0"."cluster_y",
      "t0"."cluster_z",
      "t0"."registers_per_thread",
      "t0"."static_shared_bytes",
      "t0"."dynamic_shared_bytes",
      "t0"."local_bytes_per_thread",
      "t0"."launch_type",
      "t0"."graph_id",
      "t0"."graph_node_id",
      "t0"."priority",
      "t0"."source_graph_node_id",
      "t0"."captured_external_id",
      "t0"."graph_degree",
      "t0"."demangled_name",
      "t0"."class",
      "t0"."process_id",
      "t0"."op",
      "t0"."occupancy_percent",
      "t0"."uses_tensor_cores",
      "t0"."run",
      "t0"."rank",
      "t0"."step",
      "t0"."name"
    FROM "kernels" AS "t0"
  ) AS t0
  GROUP BY
    "t0"."run",
    "t0"."rank",
    "t0"."step",
    "t0"."name"
) AS "t2"
INNER JOIN (
  SELECT
    "t3"."median_ns",
    "t3"."run" AS "of_run",
    "t3"."rank" AS "of_rank",
    "t3"."step" AS "of_step",
    "t3"."name" AS "of_name"
  FROM (
    SELECT
      "t0"."run",
      "t0"."rank",
      "t0"."step",
      "t0"."name",
      "t0"."duration_ns" AS "median_ns",
      ROW_NUMBER() OVER (
        PARTITION BY "t0"."run", "t0"."rank", "t0"."step", "t0"."name"
        ORDER BY "t0"."duration_ns" ASC, "t0"."id" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) - 1 AS "place",
      COUNT(*) OVER (
        PARTITION BY "t0"."run", "t0"."rank", "t0"."step", "t0"."name"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "number"
    FROM "kernels" AS "t0"
  ) AS "t3"
  WHERE
    (
      (
        "t3"."place" * 2
      ) = (
        "t3"."number" - 1
      )
    )
    OR (
      (
        "t3"."place" * 2
      ) = (
        "t3"."number" - 2
      )
    )
) AS "t5"
  ON "t2"."run" = "t5"."of_run"
  AND "t2"."rank" = "t5"."of_rank"
  AND "t2"."step" = "t5"."of_step"
  AND "t2"."name" = "t5"."of_name"
