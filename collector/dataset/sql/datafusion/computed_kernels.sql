SELECT
  "t1"."run",
  "t1"."rank",
  "t1"."step",
  "t1"."name",
  COUNT(*) AS "count",
  SUM("t1"."duration_ns") AS "total_ns",
  MIN("t1"."duration_ns") AS "min_ns",
  MAX("t1"."duration_ns") AS "max_ns",
  MAX(
    CASE
      WHEN (
        (
          "t1"."place" * 2
        ) = (
          "t1"."number" - 1
        )
      )
      OR (
        (
          "t1"."place" * 2
        ) = (
          "t1"."number" - 2
        )
      )
      THEN "t1"."duration_ns"
      ELSE NULL
    END
  ) AS "median_ns"
FROM (
  SELECT
    "t1"."id",
    "t1"."start_ns",
    "t1"."duration_ns",
    "t1"."device_id",
    "t1"."context_id",
    "t1"."stream_id",
    "t1"."correlation_id",
    "t1"."grid_x",
    "t1"."grid_y",
    "t1"."grid_z",
    "t1"."block_x",
    "t1"."block_y",
    "t1"."block_z",
    "t1"."cluster_x",
    "t1"."cluster_y",
    "t1"."cluster_z",
    "t1"."registers_per_thread",
    "t1"."static_shared_bytes",
    "t1"."dynamic_shared_bytes",
    "t1"."local_bytes_per_thread",
    "t1"."launch_type",
    "t1"."graph_id",
    "t1"."graph_node_id",
    "t1"."priority",
    "t1"."source_graph_node_id",
    "t1"."captured_external_id",
    "t1"."graph_degree",
    "t1"."demangled_name",
    "t1"."class",
    "t1"."process_id",
    "t1"."op",
    "t1"."occupancy_percent",
    "t1"."uses_tensor_cores",
    "t1"."place",
    "t1"."number",
    "t1"."run",
    "t1"."rank",
    "t1"."step",
    "t1"."name"
  FROM (
    SELECT
      "t0"."run",
      "t0"."rank",
      "t0"."step",
      "t0"."id",
      "t0"."start_ns",
      "t0"."duration_ns",
      "t0"."device_id",
      "t0"."context_id",
      "t0"."stream_id",
      "t0"."correlation_id",
      "t0"."name",
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
      ROW_NUMBER() OVER (
        PARTITION BY "t0"."run", "t0"."rank", "t0"."step", "t0"."name"
        ORDER BY "t0"."duration_ns" ASC, "t0"."id" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) - 1 AS "place",
      COUNT(*) OVER (
        PARTITION BY "t0"."run", "t0"."rank", "t0"."step", "t0"."name"
        ORDER BY "t0"."duration_ns" ASC, "t0"."id" ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "number"
    FROM "kernels" AS "t0"
  ) AS "t1"
) AS t1
GROUP BY
  "t1"."run",
  "t1"."rank",
  "t1"."step",
  "t1"."name"
