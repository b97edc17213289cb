WITH "t16" AS (
  SELECT
    "t15"."run",
    "t15"."step",
    "t15"."name",
    "t15"."demangled_name",
    "t15"."grid",
    "t15"."block",
    "t15"."collective",
    "t15"."group_name",
    "t15"."sequence",
    "t15"."type_name",
    "t15"."num_in_elements",
    "t15"."rank",
    "t15"."start_ns",
    "t15"."duration_ns",
    "t15"."end_ns",
    "t15"."ordinal",
    "t15"."most",
    "t15"."as_many"
  FROM (
    SELECT
      "t14"."run",
      "t14"."step",
      "t14"."name",
      "t14"."demangled_name",
      "t14"."grid",
      "t14"."block",
      "t14"."collective",
      "t14"."group_name",
      "t14"."sequence",
      "t14"."type_name",
      "t14"."num_in_elements",
      "t14"."rank",
      "t14"."start_ns",
      "t14"."duration_ns",
      "t14"."end_ns",
      "t14"."ordinal",
      "t14"."number",
      MAX("t14"."number") OVER (
        PARTITION BY "t14"."run", "t14"."step", "t14"."name", "t14"."demangled_name", "t14"."grid", "t14"."block", "t14"."collective", "t14"."group_name", "t14"."sequence", "t14"."type_name", "t14"."num_in_elements"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "most",
      MIN("t14"."number") OVER (
        PARTITION BY "t14"."run", "t14"."step", "t14"."name", "t14"."demangled_name", "t14"."grid", "t14"."block", "t14"."collective", "t14"."group_name", "t14"."sequence", "t14"."type_name", "t14"."num_in_elements"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) = MAX("t14"."number") OVER (
        PARTITION BY "t14"."run", "t14"."step", "t14"."name", "t14"."demangled_name", "t14"."grid", "t14"."block", "t14"."collective", "t14"."group_name", "t14"."sequence", "t14"."type_name", "t14"."num_in_elements"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "as_many"
    FROM (
      SELECT
        "t13"."run",
        "t13"."step",
        "t13"."name",
        "t13"."demangled_name",
        "t13"."grid",
        "t13"."block",
        "t13"."collective",
        "t13"."group_name",
        "t13"."sequence",
        "t13"."type_name",
        "t13"."num_in_elements",
        "t13"."rank",
        "t13"."start_ns",
        "t13"."duration_ns",
        "t13"."end_ns",
        "t13"."ordinal",
        COUNT("t13"."ordinal") OVER (
          PARTITION BY "t13"."run", "t13"."step", "t13"."name", "t13"."demangled_name", "t13"."grid", "t13"."block", "t13"."collective", "t13"."group_name", "t13"."sequence", "t13"."type_name", "t13"."num_in_elements", "t13"."rank"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS "number"
      FROM (
        SELECT
          "t12"."run",
          "t12"."step",
          "t12"."name",
          "t12"."demangled_name",
          "t12"."grid",
          "t12"."block",
          "t12"."collective",
          "t12"."group_name",
          "t12"."sequence",
          "t12"."type_name",
          "t12"."num_in_elements",
          "t12"."rank",
          "t12"."start_ns",
          "t12"."duration_ns",
          "t12"."start_ns" + "t12"."duration_ns" AS "end_ns",
          ROW_NUMBER() OVER (
            PARTITION BY "t12"."run", "t12"."step", "t12"."name", "t12"."demangled_name", "t12"."grid", "t12"."block", "t12"."collective", "t12"."group_name", "t12"."sequence", "t12"."type_name", "t12"."num_in_elements", "t12"."rank"
            ORDER BY "t12"."start_ns" ASC, "t12"."id" ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) - 1 AS "ordinal"
        FROM (
          SELECT
            "t11"."run",
            "t11"."rank",
            "t11"."step",
            "t11"."id",
            "t11"."start_ns",
            "t11"."duration_ns",
            "t11"."device_id",
            "t11"."context_id",
            "t11"."stream_id",
            "t11"."correlation_id",
            "t11"."name",
            "t11"."grid_x",
            "t11"."grid_y",
            "t11"."grid_z",
            "t11"."block_x",
            "t11"."block_y",
            "t11"."block_z",
            "t11"."cluster_x",
            "t11"."cluster_y",
            "t11"."cluster_z",
            "t11"."registers_per_thread",
            "t11"."static_shared_bytes",
            "t11"."dynamic_shared_bytes",
            "t11"."local_bytes_per_thread",
            "t11"."launch_type",
            "t11"."graph_id",
            "t11"."graph_node_id",
            "t11"."priority",
            "t11"."source_graph_node_id",
            "t11"."captured_external_id",
            "t11"."graph_degree",
            "t11"."demangled_name",
            "t11"."class",
            "t11"."process_id",
            "t11"."op",
            "t11"."occupancy_percent",
            "t11"."uses_tensor_cores",
            "t11"."is_named",
            "t11"."grid",
            "t11"."block",
            "t11"."of_correlation_id",
            "t11"."is_stated",
            CASE WHEN "t11"."run_states" THEN "t11"."collective" ELSE NULL END AS "collective",
            CASE WHEN "t11"."run_states" THEN "t11"."group_name" ELSE NULL END AS "group_name",
            CASE WHEN "t11"."run_states" THEN "t11"."sequence" ELSE NULL END AS "sequence",
            CASE WHEN "t11"."run_states" THEN "t11"."type_name" ELSE NULL END AS "type_name",
            CASE WHEN "t11"."run_states" THEN "t11"."num_in_elements" ELSE NULL END AS "num_in_elements",
            "t11"."step_states",
            "t11"."run_states"
          FROM (
            SELECT
              "t10"."run",
              "t10"."rank",
              "t10"."step",
              "t10"."id",
              "t10"."start_ns",
              "t10"."duration_ns",
              "t10"."device_id",
              "t10"."context_id",
              "t10"."stream_id",
              "t10"."correlation_id",
              "t10"."name",
              "t10"."grid_x",
              "t10"."grid_y",
              "t10"."grid_z",
              "t10"."block_x",
              "t10"."block_y",
              "t10"."block_z",
              "t10"."cluster_x",
              "t10"."cluster_y",
              "t10"."cluster_z",
              "t10"."registers_per_thread",
              "t10"."static_shared_bytes",
              "t10"."dynamic_shared_bytes",
              "t10"."local_bytes_per_thread",
              "t10"."launch_type",
              "t10"."graph_id",
              "t10"."graph_node_id",
              "t10"."priority",
              "t10"."source_graph_node_id",
              "t10"."captured_external_id",
              "t10"."graph_degree",
              "t10"."demangled_name",
              "t10"."class",
              "t10"."process_id",
              "t10"."op",
              "t10"."occupancy_percent",
              "t10"."uses_tensor_cores",
              "t10"."is_named",
              "t10"."grid",
              "t10"."block",
              "t10"."of_correlation_id",
              "t10"."is_stated",
              "t10"."collective",
              "t10"."group_name",
              "t10"."sequence",
              "t10"."type_name",
              "t10"."num_in_elements",
              "t10"."step_states",
              MIN("t10"."step_states") OVER (PARTITION BY "t10"."run" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) > 0 AS "run_states"
            FROM (
              SELECT
                "t9"."run",
                "t9"."rank",
                "t9"."step",
                "t9"."id",
                "t9"."start_ns",
                "t9"."duration_ns",
                "t9"."device_id",
                "t9"."context_id",
                "t9"."stream_id",
                "t9"."correlation_id",
                "t9"."name",
                "t9"."grid_x",
                "t9"."grid_y",
                "t9"."grid_z",
                "t9"."block_x",
                "t9"."block_y",
                "t9"."block_z",
                "t9"."cluster_x",
                "t9"."cluster_y",
                "t9"."cluster_z",
                "t9"."registers_per_thread",
                "t9"."static_shared_bytes",
                "t9"."dynamic_shared_bytes",
                "t9"."local_bytes_per_thread",
                "t9"."launch_type",
                "t9"."graph_id",
                "t9"."graph_node_id",
                "t9"."priority",
                "t9"."source_graph_node_id",
                "t9"."captured_external_id",
                "t9"."graph_degree",
                "t9"."demangled_name",
                "t9"."class",
                "t9"."process_id",
                "t9"."op",
                "t9"."occupancy_percent",
                "t9"."uses_tensor_cores",
                "t9"."is_named",
                "t9"."grid",
                "t9"."block",
                "t9"."of_correlation_id",
                "t9"."is_stated",
                "t9"."collective",
                "t9"."group_name",
                "t9"."sequence",
                "t9"."type_name",
                "t9"."num_in_elements",
                MAX("t9"."is_stated") OVER (
                  PARTITION BY "t9"."run", "t9"."rank", "t9"."step"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) AS "step_states"
              FROM (
                SELECT
                  "t8"."run",
                  "t8"."rank",
                  "t8"."step",
                  "t8"."id",
                  "t8"."start_ns",
                  "t8"."duration_ns",
                  "t8"."device_id",
                  "t8"."context_id",
                  "t8"."stream_id",
                  "t8"."correlation_id",
                  "t8"."name",
                  "t8"."grid_x",
                  "t8"."grid_y",
                  "t8"."grid_z",
                  "t8"."block_x",
                  "t8"."block_y",
                  "t8"."block_z",
                  "t8"."cluster_x",
                  "t8"."cluster_y",
                  "t8"."cluster_z",
                  "t8"."registers_per_thread",
                  "t8"."static_shared_bytes",
                  "t8"."dynamic_shared_bytes",
                  "t8"."local_bytes_per_thread",
                  "t8"."launch_type",
                  "t8"."graph_id",
                  "t8"."graph_node_id",
                  "t8"."priority",
                  "t8"."source_graph_node_id",
                  "t8"."captured_external_id",
                  "t8"."graph_degree",
                  "t8"."demangled_name",
                  "t8"."class",
                  "t8"."process_id",
                  "t8"."op",
                  "t8"."occupancy_percent",
                  "t8"."uses_tensor_cores",
                  "t8"."is_named",
                  "t8"."grid",
                  "t8"."block",
                  "t8"."of_correlation_id",
                  COALESCE("t8"."is_stated", 0) AS "is_stated",
                  "t8"."collective",
                  "t8"."group_name",
                  "t8"."sequence",
                  "t8"."type_name",
                  "t8"."num_in_elements"
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
                    "t4"."name",
                    "t4"."grid_x",
                    "t4"."grid_y",
                    "t4"."grid_z",
                    "t4"."block_x",
                    "t4"."block_y",
                    "t4"."block_z",
                    "t4"."cluster_x",
                    "t4"."cluster_y",
                    "t4"."cluster_z",
                    "t4"."registers_per_thread",
                    "t4"."static_shared_bytes",
                    "t4"."dynamic_shared_bytes",
                    "t4"."local_bytes_per_thread",
                    "t4"."launch_type",
                    "t4"."graph_id",
                    "t4"."graph_node_id",
                    "t4"."priority",
                    "t4"."source_graph_node_id",
                    "t4"."captured_external_id",
                    "t4"."graph_degree",
                    "t4"."demangled_name",
                    "t4"."class",
                    "t4"."process_id",
                    "t4"."op",
                    "t4"."occupancy_percent",
                    "t4"."uses_tensor_cores",
                    "t4"."is_named",
                    "t4"."grid",
                    "t4"."block",
                    "t4"."of_correlation_id",
                    "t7"."is_stated",
                    "t7"."collective",
                    "t7"."group_name",
                    "t7"."sequence",
                    "t7"."type_name",
                    "t7"."num_in_elements"
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
                      COALESCE(
                        REGEXP_MATCHES(
                          LOWER("t0"."demangled_name"),
                          'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all'
                        )
                        OR REGEXP_MATCHES(LOWER("t0"."op"), 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all'),
                        FALSE
                      ) AS "is_named",
                      CONCAT_WS(
                        ',',
                        CAST("t0"."grid_x" AS TEXT),
                        CAST("t0"."grid_y" AS TEXT),
                        CAST("t0"."grid_z" AS TEXT)
                      ) AS "grid",
                      CONCAT_WS(
                        ',',
                        CAST("t0"."block_x" AS TEXT),
                        CAST("t0"."block_y" AS TEXT),
                        CAST("t0"."block_z" AS TEXT)
                      ) AS "block",
                      COALESCE("t0"."correlation_id", 0) AS "of_correlation_id"
                    FROM "kernels" AS "t0"
                  ) AS "t4"
                  LEFT OUTER JOIN (
                    SELECT
                      "t5"."run" AS "of_run",
                      "t5"."rank" AS "of_rank",
                      "t5"."step" AS "of_step",
                      "t5"."device_id" AS "of_device_id",
                      "t5"."context_id" AS "of_context_id",
                      "t5"."stream_id" AS "of_stream_id",
                      "t5"."start_ns" AS "of_start_ns",
                      "t5"."of_correlation_id" AS "of_of_correlation_id",
                      1 AS "is_stated",
                      CASE
                        WHEN "t5"."name" IN ('recv', 'send')
                        THEN 'pair'
                        ELSE NULLIF("t5"."name", '')
                      END AS "collective",
                      NULLIF("t5"."group_name", '') AS "group_name",
                      CASE
                        WHEN "t5"."name" IN ('recv', 'send')
                        THEN NULL
                        ELSE NULLIF("t5"."sequence", 0)
                      END AS "sequence",
                      NULLIF("t5"."type_name", '') AS "type_name",
                      CASE
                        WHEN REGEXP_MATCHES(LOWER("t5"."name"), 'all_?reduce|all_?gather|reduce_?scatter|broadcast')
                        THEN NULLIF("t5"."num_in_elements", 0)
                        ELSE NULL
                      END AS "num_in_elements"
                    FROM (
                      SELECT
                        "t2"."run",
                        "t2"."rank",
                        "t2"."step",
                        "t2"."id",
                        "t2"."start_ns",
                        "t2"."device_id",
                        "t2"."context_id",
                        "t2"."stream_id",
                        "t2"."correlation_id",
                        "t2"."name",
                        "t2"."group_name",
                        "t2"."group_size",
                        "t2"."sequence",
                        "t2"."num_in_elements",
                        "t2"."num_out_elements",
                        "t2"."type_name",
                        "t2"."of_correlation_id",
                        ROW_NUMBER() OVER (
                          PARTITION BY "t2"."run", "t2"."rank", "t2"."step", "t2"."device_id", "t2"."context_id", "t2"."stream_id", "t2"."start_ns", "t2"."of_correlation_id"
                          ORDER BY "t2"."id" DESC
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - 1 AS "place"
                      FROM (
                        SELECT
                          "t1"."run",
                          "t1"."rank",
                          "t1"."step",
                          "t1"."id",
                          "t1"."start_ns",
                          "t1"."device_id",
                          "t1"."context_id",
                          "t1"."stream_id",
                          "t1"."correlation_id",
                          "t1"."name",
                          "t1"."group_name",
                          "t1"."group_size",
                          "t1"."sequence",
                          "t1"."num_in_elements",
                          "t1"."num_out_elements",
                          "t1"."type_name",
                          COALESCE("t1"."correlation_id", 0) AS "of_correlation_id"
                        FROM "collectives" AS "t1"
                      ) AS "t2"
                    ) AS "t5"
                    WHERE
                      "t5"."place" = 0
                  ) AS "t7"
                    ON "t4"."run" = "t7"."of_run"
                    AND "t4"."rank" = "t7"."of_rank"
                    AND "t4"."step" = "t7"."of_step"
                    AND "t4"."device_id" = "t7"."of_device_id"
                    AND "t4"."context_id" = "t7"."of_context_id"
                    AND "t4"."stream_id" = "t7"."of_stream_id"
                    AND "t4"."start_ns" = "t7"."of_start_ns"
                    AND "t4"."of_correlation_id" = "t7"."of_of_correlation_id"
                ) AS "t8"
                WHERE
                  "t8"."is_named" OR (
                    COALESCE("t8"."is_stated", 0) > 0
                  )
              ) AS "t9"
            ) AS "t10"
          ) AS "t11"
          WHERE
            "t11"."is_named" OR "t11"."run_states"
        ) AS "t12"
      ) AS "t13"
    ) AS "t14"
  ) AS "t15"
), "t20" AS (
  SELECT
    "t19"."run",
    "t19"."step",
    "t19"."name",
    "t19"."demangled_name",
    "t19"."grid",
    "t19"."block",
    "t19"."collective",
    "t19"."group_name",
    "t19"."sequence",
    "t19"."type_name",
    "t19"."num_in_elements",
    "t19"."rank",
    "t19"."start_ns",
    "t19"."duration_ns",
    "t19"."end_ns",
    "t19"."ordinal",
    "t19"."most",
    "t19"."as_many",
    "t19"."of_rank",
    "t19"."differences",
    "t19"."has_all_pairs",
    MIN("t19"."rank") OVER (
      PARTITION BY "t19"."run", "t19"."step", "t19"."name", "t19"."demangled_name", "t19"."grid", "t19"."block", "t19"."collective", "t19"."group_name", "t19"."sequence", "t19"."type_name", "t19"."num_in_elements", "t19"."ordinal"
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS "first_rank",
    COUNT(*) OVER (
      PARTITION BY "t19"."run", "t19"."step", "t19"."name", "t19"."demangled_name", "t19"."grid", "t19"."block", "t19"."collective", "t19"."group_name", "t19"."sequence", "t19"."type_name", "t19"."num_in_elements", "t19"."ordinal"
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS "ranks"
  FROM (
    SELECT
      "t17"."run",
      "t17"."step",
      "t17"."name",
      "t17"."demangled_name",
      "t17"."grid",
      "t17"."block",
      "t17"."collective",
      "t17"."group_name",
      "t17"."sequence",
      "t17"."type_name",
      "t17"."num_in_elements",
      "t17"."rank",
      "t17"."start_ns",
      "t17"."duration_ns",
      "t17"."end_ns",
      "t17"."ordinal",
      "t17"."most",
      "t17"."as_many",
      COUNT(*) OVER (
        PARTITION BY "t17"."run", "t17"."rank"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "of_rank",
      SUM("t17"."most") OVER (
        PARTITION BY "t17"."run", "t17"."rank"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "differences",
      MIN(CAST("t17"."as_many" AS BIGINT)) OVER (
        PARTITION BY "t17"."run", "t17"."rank"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "has_all_pairs"
    FROM "t16" AS "t17"
  ) AS "t19"
), "t46" AS (
  SELECT
    "t25"."run",
    "t25"."rank",
    "t25"."lowest",
    "t45"."compared_with",
    "t45"."median_ns",
    "t45"."error_ns",
    "t45"."has_all_pairs",
    "t45"."collectives",
    "t45"."most_ns",
    "t45"."out_of_order",
    "t45"."dense_error_ns"
  FROM (
    SELECT
      "t22"."run",
      "t22"."rank",
      MIN("t22"."rank") OVER (PARTITION BY "t22"."run" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "lowest"
    FROM (
      SELECT DISTINCT
        "t21"."run",
        "t21"."rank"
      FROM "t20" AS "t21"
    ) AS "t22"
  ) AS "t25"
  LEFT OUTER JOIN (
    SELECT
      "t43"."run" AS "of_run",
      "t43"."rank" AS "of_rank",
      "t43"."compared_with",
      "t43"."median_ns",
      "t43"."error_ns",
      "t43"."has_all_pairs",
      "t43"."collectives",
      "t43"."most_ns",
      "t43"."out_of_order",
      "t43"."dense_error_ns"
    FROM (
      SELECT
        "t42"."run",
        "t42"."rank",
        "t42"."compared_with",
        "t42"."median_ns",
        "t42"."error_ns",
        "t42"."has_all_pairs",
        COUNT(*) AS "collectives",
        MAX("t42"."away_ns") AS "most_ns",
        SUM(
          CAST((
            "t42"."first_end_ns" < (
              "t42"."start_ns" - "t42"."median_ns"
            )
          )
          OR (
            (
              "t42"."end_ns" - "t42"."median_ns"
            ) < "t42"."first_start_ns"
          ) AS BIGINT)
        ) AS "out_of_order",
        MAX("t42"."dense_error_ns") AS "dense_error_ns"
      FROM (
        SELECT
          "t41"."run",
          "t41"."step",
          "t41"."name",
          "t41"."demangled_name",
          "t41"."grid",
          "t41"."block",
          "t41"."collective",
          "t41"."group_name",
          "t41"."sequence",
          "t41"."type_name",
          "t41"."num_in_elements",
          "t41"."rank",
          "t41"."start_ns",
          "t41"."duration_ns",
          "t41"."end_ns",
          "t41"."ordinal",
          "t41"."most",
          "t41"."as_many",
          "t41"."of_rank",
          "t41"."differences",
          "t41"."has_all_pairs",
          "t41"."first_rank",
          "t41"."ranks",
          "t41"."compared_with",
          "t41"."first_start_ns",
          "t41"."first_end_ns",
          "t41"."apart_ns",
          "t41"."median_ns",
          "t41"."away_ns",
          "t41"."error_ns",
          "t41"."nearest",
          "t41"."width_ns",
          "t41"."range_ns",
          "t41"."elapsed_ns",
          "t41"."likelihood",
          "t41"."greatest",
          "t41"."best",
          "t41"."least" + CAST(FLOOR(CAST("t41"."most_of_two" - "t41"."least" AS DOUBLE) / 2.0) AS BIGINT) AS "dense_error_ns"
        FROM (
          SELECT
            "t40"."run",
            "t40"."step",
            "t40"."name",
            "t40"."demangled_name",
            "t40"."grid",
            "t40"."block",
            "t40"."collective",
            "t40"."group_name",
            "t40"."sequence",
            "t40"."type_name",
            "t40"."num_in_elements",
            "t40"."rank",
            "t40"."start_ns",
            "t40"."duration_ns",
            "t40"."end_ns",
            "t40"."ordinal",
            "t40"."most",
            "t40"."as_many",
            "t40"."of_rank",
            "t40"."differences",
            "t40"."has_all_pairs",
            "t40"."first_rank",
            "t40"."ranks",
            "t40"."compared_with",
            "t40"."first_start_ns",
            "t40"."first_end_ns",
            "t40"."apart_ns",
            "t40"."median_ns",
            "t40"."away_ns",
            "t40"."error_ns",
            "t40"."nearest",
            "t40"."width_ns",
            "t40"."range_ns",
            "t40"."elapsed_ns",
            "t40"."likelihood",
            "t40"."greatest",
            "t40"."best",
            "t40"."middle",
            MIN("t40"."middle") OVER (
              PARTITION BY "t40"."run", "t40"."rank"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS "least",
            MAX("t40"."middle") OVER (
              PARTITION BY "t40"."run", "t40"."rank"
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS "most_of_two"
          FROM (
            SELECT
              "t39"."run",
              "t39"."step",
              "t39"."name",
              "t39"."demangled_name",
              "t39"."grid",
              "t39"."block",
              "t39"."collective",
              "t39"."group_name",
              "t39"."sequence",
              "t39"."type_name",
              "t39"."num_in_elements",
              "t39"."rank",
              "t39"."start_ns",
              "t39"."duration_ns",
              "t39"."end_ns",
              "t39"."ordinal",
              "t39"."most",
              "t39"."as_many",
              "t39"."of_rank",
              "t39"."differences",
              "t39"."has_all_pairs",
              "t39"."first_rank",
              "t39"."ranks",
              "t39"."compared_with",
              "t39"."first_start_ns",
              "t39"."first_end_ns",
              "t39"."apart_ns",
              "t39"."median_ns",
              "t39"."away_ns",
              "t39"."error_ns",
              "t39"."nearest",
              "t39"."width_ns",
              "t39"."range_ns",
              "t39"."elapsed_ns",
              "t39"."likelihood",
              "t39"."greatest",
              "t39"."best",
              CASE
                WHEN (
                  (
                    "t39"."nearest" * 2
                  ) >= "t39"."best"
                )
                AND (
                  (
                    "t39"."nearest" * 2
                  ) <= (
                    "t39"."best" + 2
                  )
                )
                THEN "t39"."away_ns"
                ELSE NULL
              END AS "middle"
            FROM (
              SELECT
                "t38"."run",
                "t38"."step",
                "t38"."name",
                "t38"."demangled_name",
                "t38"."grid",
                "t38"."block",
                "t38"."collective",
                "t38"."group_name",
                "t38"."sequence",
                "t38"."type_name",
                "t38"."num_in_elements",
                "t38"."rank",
                "t38"."start_ns",
                "t38"."duration_ns",
                "t38"."end_ns",
                "t38"."ordinal",
                "t38"."most",
                "t38"."as_many",
                "t38"."of_rank",
                "t38"."differences",
                "t38"."has_all_pairs",
                "t38"."first_rank",
                "t38"."ranks",
                "t38"."compared_with",
                "t38"."first_start_ns",
                "t38"."first_end_ns",
                "t38"."apart_ns",
                "t38"."median_ns",
                "t38"."away_ns",
                "t38"."error_ns",
                "t38"."nearest",
                "t38"."width_ns",
                "t38"."range_ns",
                "t38"."elapsed_ns",
                "t38"."likelihood",
                "t38"."greatest",
                MAX(
                  CASE WHEN "t38"."likelihood" = "t38"."greatest" THEN "t38"."nearest" ELSE NULL END
                ) OVER (
                  PARTITION BY "t38"."run", "t38"."rank"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) AS "best"
              FROM (
                SELECT
                  "t37"."run",
                  "t37"."step",
                  "t37"."name",
                  "t37"."demangled_name",
                  "t37"."grid",
                  "t37"."block",
                  "t37"."collective",
                  "t37"."group_name",
                  "t37"."sequence",
                  "t37"."type_name",
                  "t37"."num_in_elements",
                  "t37"."rank",
                  "t37"."start_ns",
                  "t37"."duration_ns",
                  "t37"."end_ns",
                  "t37"."ordinal",
                  "t37"."most",
                  "t37"."as_many",
                  "t37"."of_rank",
                  "t37"."differences",
                  "t37"."has_all_pairs",
                  "t37"."first_rank",
                  "t37"."ranks",
                  "t37"."compared_with",
                  "t37"."first_start_ns",
                  "t37"."first_end_ns",
                  "t37"."apart_ns",
                  "t37"."median_ns",
                  "t37"."away_ns",
                  "t37"."error_ns",
                  "t37"."nearest",
                  "t37"."width_ns",
                  "t37"."range_ns",
                  "t37"."elapsed_ns",
                  "t37"."likelihood",
                  MAX("t37"."likelihood") OVER (
                    PARTITION BY "t37"."run", "t37"."rank"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "greatest"
                FROM (
                  SELECT
                    "t36"."run",
                    "t36"."step",
                    "t36"."name",
                    "t36"."demangled_name",
                    "t36"."grid",
                    "t36"."block",
                    "t36"."collective",
                    "t36"."group_name",
                    "t36"."sequence",
                    "t36"."type_name",
                    "t36"."num_in_elements",
                    "t36"."rank",
                    "t36"."start_ns",
                    "t36"."duration_ns",
                    "t36"."end_ns",
                    "t36"."ordinal",
                    "t36"."most",
                    "t36"."as_many",
                    "t36"."of_rank",
                    "t36"."differences",
                    "t36"."has_all_pairs",
                    "t36"."first_rank",
                    "t36"."ranks",
                    "t36"."compared_with",
                    "t36"."first_start_ns",
                    "t36"."first_end_ns",
                    "t36"."apart_ns",
                    "t36"."median_ns",
                    "t36"."away_ns",
                    "t36"."error_ns",
                    "t36"."nearest",
                    "t36"."width_ns",
                    "t36"."range_ns",
                    "t36"."elapsed_ns",
                    CASE
                      WHEN (
                        "t36"."nearest" > 1
                      )
                      AND (
                        CAST(CAST(FLOOR((
                          (
                            "t36"."nearest" + 1
                          ) * 15
                        ) / (
                          16
                        )) AS BIGINT) AS DOUBLE) > (
                          (
                            CAST(GREATEST("t36"."width_ns", 1000) AS DOUBLE) * 2.0 * CAST("t36"."differences" AS DOUBLE)
                          ) / CAST(GREATEST(
                            MAX("t36"."range_ns") OVER (
                              PARTITION BY "t36"."run", "t36"."rank"
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            MAX("t36"."elapsed_ns") OVER (
                              PARTITION BY "t36"."run", "t36"."rank"
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            1000
                          ) AS DOUBLE)
                        )
                      )
                      AND (
                        (
                          (
                            CAST(CAST(FLOOR((
                              (
                                "t36"."nearest" + 1
                              ) * 15
                            ) / (
                              16
                            )) AS BIGINT) AS DOUBLE) * LN(
                              CAST(CAST(FLOOR((
                                (
                                  "t36"."nearest" + 1
                                ) * 15
                              ) / (
                                16
                              )) AS BIGINT) AS DOUBLE) / (
                                (
                                  CAST(GREATEST("t36"."width_ns", 1000) AS DOUBLE) * 2.0 * CAST("t36"."differences" AS DOUBLE)
                                ) / CAST(GREATEST(
                                  MAX("t36"."range_ns") OVER (
                                    PARTITION BY "t36"."run", "t36"."rank"
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ),
                                  MAX("t36"."elapsed_ns") OVER (
                                    PARTITION BY "t36"."run", "t36"."rank"
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ),
                                  1000
                                ) AS DOUBLE)
                              )
                            )
                          ) - (
                            CAST(CAST(FLOOR((
                              (
                                "t36"."nearest" + 1
                              ) * 15
                            ) / (
                              16
                            )) AS BIGINT) AS DOUBLE) - (
                              (
                                CAST(GREATEST("t36"."width_ns", 1000) AS DOUBLE) * 2.0 * CAST("t36"."differences" AS DOUBLE)
                              ) / CAST(GREATEST(
                                MAX("t36"."range_ns") OVER (
                                  PARTITION BY "t36"."run", "t36"."rank"
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                ),
                                MAX("t36"."elapsed_ns") OVER (
                                  PARTITION BY "t36"."run", "t36"."rank"
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                ),
                                1000
                              ) AS DOUBLE)
                            )
                          )
                        ) > LN(
                          (
                            CAST("t36"."differences" AS DOUBLE) * LEAST(
                              CAST("t36"."of_rank" AS DOUBLE),
                              (
                                LN(GREATEST(CAST("t36"."of_rank" AS DOUBLE) / 16.0, 1.0)) * 16.0
                              ) + 16.0
                            )
                          ) / 0.001
                        )
                      )
                      THEN (
                        CAST(CAST(FLOOR((
                          (
                            "t36"."nearest" + 1
                          ) * 15
                        ) / (
                          16
                        )) AS BIGINT) AS DOUBLE) * LN(
                          CAST(CAST(FLOOR((
                            (
                              "t36"."nearest" + 1
                            ) * 15
                          ) / (
                            16
                          )) AS BIGINT) AS DOUBLE) / (
                            (
                              CAST(GREATEST("t36"."width_ns", 1000) AS DOUBLE) * 2.0 * CAST("t36"."differences" AS DOUBLE)
                            ) / CAST(GREATEST(
                              MAX("t36"."range_ns") OVER (
                                PARTITION BY "t36"."run", "t36"."rank"
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ),
                              MAX("t36"."elapsed_ns") OVER (
                                PARTITION BY "t36"."run", "t36"."rank"
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ),
                              1000
                            ) AS DOUBLE)
                          )
                        )
                      ) - (
                        CAST(CAST(FLOOR((
                          (
                            "t36"."nearest" + 1
                          ) * 15
                        ) / (
                          16
                        )) AS BIGINT) AS DOUBLE) - (
                          (
                            CAST(GREATEST("t36"."width_ns", 1000) AS DOUBLE) * 2.0 * CAST("t36"."differences" AS DOUBLE)
                          ) / CAST(GREATEST(
                            MAX("t36"."range_ns") OVER (
                              PARTITION BY "t36"."run", "t36"."rank"
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            MAX("t36"."elapsed_ns") OVER (
                              PARTITION BY "t36"."run", "t36"."rank"
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            1000
                          ) AS DOUBLE)
                        )
                      )
                      ELSE NULL
                    END AS "likelihood"
                  FROM (
                    SELECT
                      "t35"."run",
                      "t35"."step",
                      "t35"."name",
                      "t35"."demangled_name",
                      "t35"."grid",
                      "t35"."block",
                      "t35"."collective",
                      "t35"."group_name",
                      "t35"."sequence",
                      "t35"."type_name",
                      "t35"."num_in_elements",
                      "t35"."rank",
                      "t35"."start_ns",
                      "t35"."duration_ns",
                      "t35"."end_ns",
                      "t35"."ordinal",
                      "t35"."most",
                      "t35"."as_many",
                      "t35"."of_rank",
                      "t35"."differences",
                      "t35"."has_all_pairs",
                      "t35"."first_rank",
                      "t35"."ranks",
                      "t35"."compared_with",
                      "t35"."first_start_ns",
                      "t35"."first_end_ns",
                      "t35"."apart_ns",
                      "t35"."median_ns",
                      "t35"."away_ns",
                      "t35"."error_ns",
                      (
                        ROW_NUMBER() OVER (
                          PARTITION BY "t35"."run", "t35"."rank"
                          ORDER BY "t35"."away_ns" ASC, "t35"."step" ASC, "t35"."name" ASC, "t35"."demangled_name" ASC, "t35"."grid" ASC, "t35"."block" ASC, "t35"."collective" ASC, "t35"."group_name" ASC, "t35"."sequence" ASC, "t35"."type_name" ASC, "t35"."num_in_elements" ASC, "t35"."ordinal" ASC
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - 1
                      ) + 1 AS "nearest",
                      MAX("t35"."apart_ns") OVER (
                        PARTITION BY "t35"."run", "t35"."rank"
                        ORDER BY "t35"."away_ns" ASC, "t35"."step" ASC, "t35"."name" ASC, "t35"."demangled_name" ASC, "t35"."grid" ASC, "t35"."block" ASC, "t35"."collective" ASC, "t35"."group_name" ASC, "t35"."sequence" ASC, "t35"."type_name" ASC, "t35"."num_in_elements" ASC, "t35"."ordinal" ASC
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                      ) - MIN("t35"."apart_ns") OVER (
                        PARTITION BY "t35"."run", "t35"."rank"
                        ORDER BY "t35"."away_ns" ASC, "t35"."step" ASC, "t35"."name" ASC, "t35"."demangled_name" ASC, "t35"."grid" ASC, "t35"."block" ASC, "t35"."collective" ASC, "t35"."group_name" ASC, "t35"."sequence" ASC, "t35"."type_name" ASC, "t35"."num_in_elements" ASC, "t35"."ordinal" ASC
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                      ) AS "width_ns",
                      (
                        (
                          MAX("t35"."end_ns") OVER (
                            PARTITION BY "t35"."run", "t35"."step", "t35"."name", "t35"."demangled_name", "t35"."grid", "t35"."block", "t35"."collective", "t35"."group_name", "t35"."sequence", "t35"."type_name", "t35"."num_in_elements", "t35"."rank"
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) - MIN("t35"."end_ns") OVER (
                            PARTITION BY "t35"."run", "t35"."step", "t35"."name", "t35"."demangled_name", "t35"."grid", "t35"."block", "t35"."collective", "t35"."group_name", "t35"."sequence", "t35"."type_name", "t35"."num_in_elements", "t35"."rank"
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          )
                        ) + MAX("t35"."first_end_ns") OVER (
                          PARTITION BY "t35"."run", "t35"."step", "t35"."name", "t35"."demangled_name", "t35"."grid", "t35"."block", "t35"."collective", "t35"."group_name", "t35"."sequence", "t35"."type_name", "t35"."num_in_elements", "t35"."rank"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        )
                      ) - MIN("t35"."first_end_ns") OVER (
                        PARTITION BY "t35"."run", "t35"."step", "t35"."name", "t35"."demangled_name", "t35"."grid", "t35"."block", "t35"."collective", "t35"."group_name", "t35"."sequence", "t35"."type_name", "t35"."num_in_elements", "t35"."rank"
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                      ) AS "range_ns",
                      GREATEST(
                        MAX("t35"."end_ns") OVER (
                          PARTITION BY "t35"."run", "t35"."rank", "t35"."step"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - MIN("t35"."end_ns") OVER (
                          PARTITION BY "t35"."run", "t35"."rank", "t35"."step"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ),
                        MAX("t35"."first_end_ns") OVER (
                          PARTITION BY "t35"."run", "t35"."rank", "t35"."step"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - MIN("t35"."first_end_ns") OVER (
                          PARTITION BY "t35"."run", "t35"."rank", "t35"."step"
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        )
                      ) AS "elapsed_ns"
                    FROM (
                      SELECT
                        "t34"."run",
                        "t34"."step",
                        "t34"."name",
                        "t34"."demangled_name",
                        "t34"."grid",
                        "t34"."block",
                        "t34"."collective",
                        "t34"."group_name",
                        "t34"."sequence",
                        "t34"."type_name",
                        "t34"."num_in_elements",
                        "t34"."rank",
                        "t34"."start_ns",
                        "t34"."duration_ns",
                        "t34"."end_ns",
                        "t34"."ordinal",
                        "t34"."most",
                        "t34"."as_many",
                        "t34"."of_rank",
                        "t34"."differences",
                        "t34"."has_all_pairs",
                        "t34"."first_rank",
                        "t34"."ranks",
                        "t34"."compared_with",
                        "t34"."first_start_ns",
                        "t34"."first_end_ns",
                        "t34"."apart_ns",
                        "t34"."median_ns",
                        "t34"."away_ns",
                        "t34"."least" + CAST(FLOOR(CAST("t34"."most_of_two" - "t34"."least" AS DOUBLE) / 2.0) AS BIGINT) AS "error_ns"
                      FROM (
                        SELECT
                          "t33"."run",
                          "t33"."step",
                          "t33"."name",
                          "t33"."demangled_name",
                          "t33"."grid",
                          "t33"."block",
                          "t33"."collective",
                          "t33"."group_name",
                          "t33"."sequence",
                          "t33"."type_name",
                          "t33"."num_in_elements",
                          "t33"."rank",
                          "t33"."start_ns",
                          "t33"."duration_ns",
                          "t33"."end_ns",
                          "t33"."ordinal",
                          "t33"."most",
                          "t33"."as_many",
                          "t33"."of_rank",
                          "t33"."differences",
                          "t33"."has_all_pairs",
                          "t33"."first_rank",
                          "t33"."ranks",
                          "t33"."compared_with",
                          "t33"."first_start_ns",
                          "t33"."first_end_ns",
                          "t33"."apart_ns",
                          "t33"."median_ns",
                          "t33"."away_ns",
                          "t33"."place",
                          "t33"."number",
                          "t33"."middle",
                          MIN("t33"."middle") OVER (
                            PARTITION BY "t33"."run", "t33"."rank"
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS "least",
                          MAX("t33"."middle") OVER (
                            PARTITION BY "t33"."run", "t33"."rank"
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS "most_of_two"
                        FROM (
                          SELECT
                            "t32"."run",
                            "t32"."step",
                            "t32"."name",
                            "t32"."demangled_name",
                            "t32"."grid",
                            "t32"."block",
                            "t32"."collective",
                            "t32"."group_name",
                            "t32"."sequence",
                            "t32"."type_name",
                            "t32"."num_in_elements",
                            "t32"."rank",
                            "t32"."start_ns",
                            "t32"."duration_ns",
                            "t32"."end_ns",
                            "t32"."ordinal",
                            "t32"."most",
                            "t32"."as_many",
                            "t32"."of_rank",
                            "t32"."differences",
                            "t32"."has_all_pairs",
                            "t32"."first_rank",
                            "t32"."ranks",
                            "t32"."compared_with",
                            "t32"."first_start_ns",
                            "t32"."first_end_ns",
                            "t32"."apart_ns",
                            "t32"."median_ns",
                            "t32"."away_ns",
                            "t32"."place",
                            "t32"."number",
                            CASE
                              WHEN (
                                (
                                  "t32"."place" * 2
                                ) >= (
                                  "t32"."number" - 2
                                )
                              )
                              AND (
                                (
                                  "t32"."place" * 2
                                ) <= "t32"."number"
                              )
                              THEN "t32"."away_ns"
                              ELSE NULL
                            END AS "middle"
                          FROM (
                            SELECT
                              "t31"."run",
                              "t31"."step",
                              "t31"."name",
                              "t31"."demangled_name",
                              "t31"."grid",
                              "t31"."block",
                              "t31"."collective",
                              "t31"."group_name",
                              "t31"."sequence",
                              "t31"."type_name",
                              "t31"."num_in_elements",
                              "t31"."rank",
                              "t31"."start_ns",
                              "t31"."duration_ns",
                              "t31"."end_ns",
                              "t31"."ordinal",
                              "t31"."most",
                              "t31"."as_many",
                              "t31"."of_rank",
                              "t31"."differences",
                              "t31"."has_all_pairs",
                              "t31"."first_rank",
                              "t31"."ranks",
                              "t31"."compared_with",
                              "t31"."first_start_ns",
                              "t31"."first_end_ns",
                              "t31"."apart_ns",
                              "t31"."median_ns",
                              "t31"."away_ns",
                              ROW_NUMBER() OVER (
                                PARTITION BY "t31"."run", "t31"."rank"
                                ORDER BY "t31"."away_ns" ASC, "t31"."step" ASC, "t31"."name" ASC, "t31"."demangled_name" ASC, "t31"."grid" ASC, "t31"."block" ASC, "t31"."collective" ASC, "t31"."group_name" ASC, "t31"."sequence" ASC, "t31"."type_name" ASC, "t31"."num_in_elements" ASC, "t31"."ordinal" ASC
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ) - 1 AS "place",
                              COUNT(*) OVER (
                                PARTITION BY "t31"."run", "t31"."rank"
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ) AS "number"
                            FROM (
                              SELECT
                                "t30"."run",
                                "t30"."step",
                                "t30"."name",
                                "t30"."demangled_name",
                                "t30"."grid",
                                "t30"."block",
                                "t30"."collective",
                                "t30"."group_name",
                                "t30"."sequence",
                                "t30"."type_name",
                                "t30"."num_in_elements",
                                "t30"."rank",
                                "t30"."start_ns",
                                "t30"."duration_ns",
                                "t30"."end_ns",
                                "t30"."ordinal",
                                "t30"."most",
                                "t30"."as_many",
                                "t30"."of_rank",
                                "t30"."differences",
                                "t30"."has_all_pairs",
                                "t30"."first_rank",
                                "t30"."ranks",
                                "t30"."compared_with",
                                "t30"."first_start_ns",
                                "t30"."first_end_ns",
                                "t30"."apart_ns",
                                "t30"."least" + CAST(FLOOR(CAST("t30"."most_of_two" - "t30"."least" AS DOUBLE) / 2.0) AS BIGINT) AS "median_ns",
                                ABS(
                                  "t30"."apart_ns" - (
                                    "t30"."least" + CAST(FLOOR(CAST("t30"."most_of_two" - "t30"."least" AS DOUBLE) / 2.0) AS BIGINT)
                                  )
                                ) AS "away_ns"
                              FROM (
                                SELECT
                                  "t29"."run",
                                  "t29"."step",
                                  "t29"."name",
                                  "t29"."demangled_name",
                                  "t29"."grid",
                                  "t29"."block",
                                  "t29"."collective",
                                  "t29"."group_name",
                                  "t29"."sequence",
                                  "t29"."type_name",
                                  "t29"."num_in_elements",
                                  "t29"."rank",
                                  "t29"."start_ns",
                                  "t29"."duration_ns",
                                  "t29"."end_ns",
                                  "t29"."ordinal",
                                  "t29"."most",
                                  "t29"."as_many",
                                  "t29"."of_rank",
                                  "t29"."differences",
                                  "t29"."has_all_pairs",
                                  "t29"."first_rank",
                                  "t29"."ranks",
                                  "t29"."compared_with",
                                  "t29"."first_start_ns",
                                  "t29"."first_end_ns",
                                  "t29"."apart_ns",
                                  "t29"."place",
                                  "t29"."number",
                                  "t29"."middle",
                                  MIN("t29"."middle") OVER (
                                    PARTITION BY "t29"."run", "t29"."rank"
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ) AS "least",
                                  MAX("t29"."middle") OVER (
                                    PARTITION BY "t29"."run", "t29"."rank"
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ) AS "most_of_two"
                                FROM (
                                  SELECT
                                    "t28"."run",
                                    "t28"."step",
                                    "t28"."name",
                                    "t28"."demangled_name",
                                    "t28"."grid",
                                    "t28"."block",
                                    "t28"."collective",
                                    "t28"."group_name",
                                    "t28"."sequence",
                                    "t28"."type_name",
                                    "t28"."num_in_elements",
                                    "t28"."rank",
                                    "t28"."start_ns",
                                    "t28"."duration_ns",
                                    "t28"."end_ns",
                                    "t28"."ordinal",
                                    "t28"."most",
                                    "t28"."as_many",
                                    "t28"."of_rank",
                                    "t28"."differences",
                                    "t28"."has_all_pairs",
                                    "t28"."first_rank",
                                    "t28"."ranks",
                                    "t28"."compared_with",
                                    "t28"."first_start_ns",
                                    "t28"."first_end_ns",
                                    "t28"."apart_ns",
                                    "t28"."place",
                                    "t28"."number",
                                    CASE
                                      WHEN (
                                        (
                                          "t28"."place" * 2
                                        ) >= (
                                          "t28"."number" - 2
                                        )
                                      )
                                      AND (
                                        (
                                          "t28"."place" * 2
                                        ) <= "t28"."number"
                                      )
                                      THEN "t28"."apart_ns"
                                      ELSE NULL
                                    END AS "middle"
                                  FROM (
                                    SELECT
                                      "t27"."run",
                                      "t27"."step",
                                      "t27"."name",
                                      "t27"."demangled_name",
                                      "t27"."grid",
                                      "t27"."block",
                                      "t27"."collective",
                                      "t27"."group_name",
                                      "t27"."sequence",
                                      "t27"."type_name",
                                      "t27"."num_in_elements",
                                      "t27"."rank",
                                      "t27"."start_ns",
                                      "t27"."duration_ns",
                                      "t27"."end_ns",
                                      "t27"."ordinal",
                                      "t27"."most",
                                      "t27"."as_many",
                                      "t27"."of_rank",
                                      "t27"."differences",
                                      "t27"."has_all_pairs",
                                      "t27"."first_rank",
                                      "t27"."ranks",
                                      "t27"."compared_with",
                                      "t27"."first_start_ns",
                                      "t27"."first_end_ns",
                                      "t27"."apart_ns",
                                      ROW_NUMBER() OVER (
                                        PARTITION BY "t27"."run", "t27"."rank"
                                        ORDER BY "t27"."apart_ns" ASC, "t27"."step" ASC, "t27"."name" ASC, "t27"."demangled_name" ASC, "t27"."grid" ASC, "t27"."block" ASC, "t27"."collective" ASC, "t27"."group_name" ASC, "t27"."sequence" ASC, "t27"."type_name" ASC, "t27"."num_in_elements" ASC, "t27"."ordinal" ASC
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                      ) - 1 AS "place",
                                      COUNT(*) OVER (
                                        PARTITION BY "t27"."run", "t27"."rank"
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                      ) AS "number"
                                    FROM (
                                      SELECT
                                        "t26"."run",
                                        "t26"."step",
                                        "t26"."name",
                                        "t26"."demangled_name",
                                        "t26"."grid",
                                        "t26"."block",
                                        "t26"."collective",
                                        "t26"."group_name",
                                        "t26"."sequence",
                                        "t26"."type_name",
                                        "t26"."num_in_elements",
                                        "t26"."rank",
                                        "t26"."start_ns",
                                        "t26"."duration_ns",
                                        "t26"."end_ns",
                                        "t26"."ordinal",
                                        "t26"."most",
                                        "t26"."as_many",
                                        "t26"."of_rank",
                                        "t26"."differences",
                                        "t26"."has_all_pairs",
                                        "t26"."first_rank",
                                        "t26"."ranks",
                                        "t26"."compared_with",
                                        "t26"."first_start_ns",
                                        "t26"."first_end_ns",
                                        "t26"."end_ns" - "t26"."first_end_ns" AS "apart_ns"
                                      FROM (
                                        SELECT
                                          "t23"."run",
                                          "t23"."step",
                                          "t23"."name",
                                          "t23"."demangled_name",
                                          "t23"."grid",
                                          "t23"."block",
                                          "t23"."collective",
                                          "t23"."group_name",
                                          "t23"."sequence",
                                          "t23"."type_name",
                                          "t23"."num_in_elements",
                                          "t23"."rank",
                                          "t23"."start_ns",
                                          "t23"."duration_ns",
                                          "t23"."end_ns",
                                          "t23"."ordinal",
                                          "t23"."most",
                                          "t23"."as_many",
                                          "t23"."of_rank",
                                          "t23"."differences",
                                          "t23"."has_all_pairs",
                                          "t23"."first_rank",
                                          "t23"."ranks",
                                          MIN("t23"."first_rank") OVER (
                                            PARTITION BY "t23"."run", "t23"."rank"
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                          ) AS "compared_with",
                                          MAX(CASE WHEN "t23"."rank" = "t23"."first_rank" THEN "t23"."start_ns" ELSE NULL END) OVER (
                                            PARTITION BY "t23"."run", "t23"."step", "t23"."name", "t23"."demangled_name", "t23"."grid", "t23"."block", "t23"."collective", "t23"."group_name", "t23"."sequence", "t23"."type_name", "t23"."num_in_elements", "t23"."ordinal"
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                          ) AS "first_start_ns",
                                          MAX(CASE WHEN "t23"."rank" = "t23"."first_rank" THEN "t23"."end_ns" ELSE NULL END) OVER (
                                            PARTITION BY "t23"."run", "t23"."step", "t23"."name", "t23"."demangled_name", "t23"."grid", "t23"."block", "t23"."collective", "t23"."group_name", "t23"."sequence", "t23"."type_name", "t23"."num_in_elements", "t23"."ordinal"
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                          ) AS "first_end_ns"
                                        FROM (
                                          SELECT
                                            *
                                          FROM "t20" AS "t21"
                                          WHERE
                                            "t21"."as_many" AND "t21"."ranks" > 1
                                        ) AS "t23"
                                      ) AS "t26"
                                      WHERE
                                        "t26"."first_rank" = "t26"."compared_with"
                                    ) AS "t27"
                                  ) AS "t28"
                                ) AS "t29"
                              ) AS "t30"
                            ) AS "t31"
                          ) AS "t32"
                        ) AS "t33"
                      ) AS "t34"
                    ) AS "t35"
                  ) AS "t36"
                ) AS "t37"
              ) AS "t38"
            ) AS "t39"
          ) AS "t40"
        ) AS "t41"
      ) AS "t42"
      GROUP BY
        1,
        2,
        3,
        4,
        5,
        6
    ) AS "t43"
  ) AS "t45"
    ON "t25"."run" = "t45"."of_run" AND "t25"."rank" = "t45"."of_rank"
)
SELECT
  "t63"."run",
  "t63"."step",
  "t63"."name",
  "t63"."demangled_name",
  "t63"."grid",
  "t63"."block",
  "t63"."collective",
  "t63"."group_name",
  "t63"."sequence",
  "t63"."type_name",
  "t63"."num_in_elements",
  "t63"."ordinal",
  "t63"."ranks",
  CASE WHEN "t63"."is_paired" THEN 'by ordinal' ELSE 'unknown' END AS "pairing",
  CASE WHEN "t63"."is_paired" THEN "t63"."straggler" ELSE NULL END AS "straggler",
  CASE WHEN "t63"."is_paired" THEN "t63"."cost_ns" ELSE NULL END AS "cost_ns",
  CASE WHEN "t63"."is_paired" THEN "t63"."transfer_ns" ELSE NULL END AS "transfer_ns",
  CASE WHEN "t63"."is_paired" THEN "t63"."last_ns" - "t63"."first_ns" ELSE NULL END AS "skew_ns"
FROM (
  SELECT
    "t62"."run",
    "t62"."step",
    "t62"."name",
    "t62"."demangled_name",
    "t62"."grid",
    "t62"."block",
    "t62"."collective",
    "t62"."group_name",
    "t62"."sequence",
    "t62"."type_name",
    "t62"."num_in_elements",
    "t62"."ordinal",
    "t62"."straggler",
    "t62"."ranks",
    "t62"."first_ns",
    "t62"."last_ns",
    "t62"."transfer_ns",
    "t62"."is_paired",
    SUM(CASE WHEN "t62"."wait_ns" > "t62"."errors_ns" THEN "t62"."wait_ns" ELSE 0 END) AS "cost_ns"
  FROM (
    SELECT
      "t61"."run",
      "t61"."step",
      "t61"."name",
      "t61"."demangled_name",
      "t61"."grid",
      "t61"."block",
      "t61"."collective",
      "t61"."group_name",
      "t61"."sequence",
      "t61"."type_name",
      "t61"."num_in_elements",
      "t61"."ordinal",
      "t61"."rank",
      "t61"."duration_ns",
      "t61"."as_many",
      "t61"."reference",
      "t61"."start_ns",
      "t61"."end_ns",
      "t61"."error_ns",
      "t61"."ranks",
      "t61"."first_ns",
      "t61"."last_ns",
      "t61"."first_end_ns",
      "t61"."last_end_ns",
      "t61"."transfer_ns",
      "t61"."is_comparable",
      "t61"."spread_ns",
      "t61"."together_ns",
      "t61"."room_ns",
      "t61"."is_paired",
      "t61"."straggler",
      "t61"."last_ns" - "t61"."start_ns" AS "wait_ns",
      "t61"."error_ns" + MAX(CASE WHEN "t61"."rank" = "t61"."straggler" THEN "t61"."error_ns" ELSE NULL END) OVER (
        PARTITION BY "t61"."run", "t61"."step", "t61"."name", "t61"."demangled_name", "t61"."grid", "t61"."block", "t61"."collective", "t61"."group_name", "t61"."sequence", "t61"."type_name", "t61"."num_in_elements", "t61"."ordinal"
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS "errors_ns"
    FROM (
      SELECT
        "t60"."run",
        "t60"."step",
        "t60"."name",
        "t60"."demangled_name",
        "t60"."grid",
        "t60"."block",
        "t60"."collective",
        "t60"."group_name",
        "t60"."sequence",
        "t60"."type_name",
        "t60"."num_in_elements",
        "t60"."ordinal",
        "t60"."rank",
        "t60"."duration_ns",
        "t60"."as_many",
        "t60"."reference",
        "t60"."start_ns",
        "t60"."end_ns",
        "t60"."error_ns",
        "t60"."ranks",
        "t60"."first_ns",
        "t60"."last_ns",
        "t60"."first_end_ns",
        "t60"."last_end_ns",
        "t60"."transfer_ns",
        "t60"."is_comparable",
        "t60"."spread_ns",
        "t60"."together_ns",
        "t60"."room_ns",
        "t60"."is_paired",
        MIN(CASE WHEN "t60"."start_ns" = "t60"."last_ns" THEN "t60"."rank" ELSE NULL END) OVER (
          PARTITION BY "t60"."run", "t60"."step", "t60"."name", "t60"."demangled_name", "t60"."grid", "t60"."block", "t60"."collective", "t60"."group_name", "t60"."sequence", "t60"."type_name", "t60"."num_in_elements", "t60"."ordinal"
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS "straggler"
      FROM (
        SELECT
          *
        FROM (
          SELECT
            "t58"."run",
            "t58"."step",
            "t58"."name",
            "t58"."demangled_name",
            "t58"."grid",
            "t58"."block",
            "t58"."collective",
            "t58"."group_name",
            "t58"."sequence",
            "t58"."type_name",
            "t58"."num_in_elements",
            "t58"."ordinal",
            "t58"."rank",
            "t58"."duration_ns",
            "t58"."as_many",
            "t58"."reference",
            "t58"."start_ns",
            "t58"."end_ns",
            "t58"."error_ns",
            "t58"."ranks",
            "t58"."first_ns",
            "t58"."last_ns",
            "t58"."first_end_ns",
            "t58"."last_end_ns",
            "t58"."transfer_ns",
            "t58"."is_comparable",
            "t58"."spread_ns",
            "t58"."together_ns",
            "t58"."room_ns",
            "t58"."as_many"
            AND "t58"."is_comparable"
            AND (
              MIN("t58"."together_ns") OVER (
                PARTITION BY "t58"."run", "t58"."step", "t58"."name", "t58"."demangled_name", "t58"."grid", "t58"."block", "t58"."collective", "t58"."group_name", "t58"."sequence", "t58"."type_name", "t58"."num_in_elements"
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) >= 0
            )
            AND (
              COALESCE(
                MIN("t58"."room_ns") OVER (
                  PARTITION BY "t58"."run", "t58"."step", "t58"."name", "t58"."demangled_name", "t58"."grid", "t58"."block", "t58"."collective", "t58"."group_name", "t58"."sequence", "t58"."type_name", "t58"."num_in_elements"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ),
                1
              ) > 0
            ) AS "is_paired"
          FROM (
            SELECT
              "t57"."run",
              "t57"."step",
              "t57"."name",
              "t57"."demangled_name",
              "t57"."grid",
              "t57"."block",
              "t57"."collective",
              "t57"."group_name",
              "t57"."sequence",
              "t57"."type_name",
              "t57"."num_in_elements",
              "t57"."ordinal",
              "t57"."rank",
              "t57"."duration_ns",
              "t57"."as_many",
              "t57"."reference",
              "t57"."start_ns",
              "t57"."end_ns",
              "t57"."error_ns",
              "t57"."ranks",
              "t57"."first_ns",
              "t57"."last_ns",
              "t57"."first_end_ns",
              "t57"."last_end_ns",
              "t57"."transfer_ns",
              "t57"."is_comparable",
              "t57"."spread_ns",
              "t57"."first_end_ns" - "t57"."last_ns" AS "together_ns",
              (
                LEAD("t57"."first_end_ns") OVER (
                  PARTITION BY "t57"."run", "t57"."step", "t57"."name", "t57"."demangled_name", "t57"."grid", "t57"."block", "t57"."collective", "t57"."group_name", "t57"."sequence", "t57"."type_name", "t57"."num_in_elements", "t57"."rank"
                  ORDER BY "t57"."ordinal" ASC
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) - "t57"."last_end_ns"
              ) - GREATEST(
                "t57"."spread_ns",
                LEAD("t57"."spread_ns") OVER (
                  PARTITION BY "t57"."run", "t57"."step", "t57"."name", "t57"."demangled_name", "t57"."grid", "t57"."block", "t57"."collective", "t57"."group_name", "t57"."sequence", "t57"."type_name", "t57"."num_in_elements", "t57"."rank"
                  ORDER BY "t57"."ordinal" ASC
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                )
              ) AS "room_ns"
            FROM (
              SELECT
                "t56"."run",
                "t56"."step",
                "t56"."name",
                "t56"."demangled_name",
                "t56"."grid",
                "t56"."block",
                "t56"."collective",
                "t56"."group_name",
                "t56"."sequence",
                "t56"."type_name",
                "t56"."num_in_elements",
                "t56"."ordinal",
                "t56"."rank",
                "t56"."duration_ns",
                "t56"."as_many",
                "t56"."reference",
                "t56"."start_ns",
                "t56"."end_ns",
                "t56"."error_ns",
                "t56"."ranks",
                "t56"."first_ns",
                "t56"."last_ns",
                "t56"."first_end_ns",
                "t56"."last_end_ns",
                "t56"."transfer_ns",
                "t56"."is_comparable",
                "t56"."last_end_ns" - "t56"."first_end_ns" AS "spread_ns"
              FROM (
                SELECT
                  "t55"."run",
                  "t55"."step",
                  "t55"."name",
                  "t55"."demangled_name",
                  "t55"."grid",
                  "t55"."block",
                  "t55"."collective",
                  "t55"."group_name",
                  "t55"."sequence",
                  "t55"."type_name",
                  "t55"."num_in_elements",
                  "t55"."ordinal",
                  "t55"."rank",
                  "t55"."duration_ns",
                  "t55"."as_many",
                  "t55"."reference",
                  "t55"."start_ns",
                  "t55"."end_ns",
                  "t55"."error_ns",
                  COUNT("t55"."rank") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "ranks",
                  MIN("t55"."start_ns") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "first_ns",
                  MAX("t55"."start_ns") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "last_ns",
                  MIN("t55"."end_ns") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "first_end_ns",
                  MAX("t55"."end_ns") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "last_end_ns",
                  MIN("t55"."duration_ns") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "transfer_ns",
                  MIN("t55"."reference") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) = MAX("t55"."reference") OVER (
                    PARTITION BY "t55"."run", "t55"."step", "t55"."name", "t55"."demangled_name", "t55"."grid", "t55"."block", "t55"."collective", "t55"."group_name", "t55"."sequence", "t55"."type_name", "t55"."num_in_elements", "t55"."ordinal"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS "is_comparable"
                FROM (
                  SELECT
                    "t18"."run",
                    "t18"."step",
                    "t18"."name",
                    "t18"."demangled_name",
                    "t18"."grid",
                    "t18"."block",
                    "t18"."collective",
                    "t18"."group_name",
                    "t18"."sequence",
                    "t18"."type_name",
                    "t18"."num_in_elements",
                    "t18"."ordinal",
                    "t18"."rank",
                    "t18"."duration_ns",
                    "t18"."as_many",
                    "t54"."reference",
                    "t18"."start_ns" - "t54"."clock_offset_ns" AS "start_ns",
                    "t18"."end_ns" - "t54"."clock_offset_ns" AS "end_ns",
                    "t54"."clock_error_ns" AS "error_ns"
                  FROM "t16" AS "t18"
                  INNER JOIN (
                    SELECT
                      "t52"."reference",
                      "t52"."clock_offset_ns",
                      "t52"."clock_error_ns",
                      "t52"."run" AS "of_run",
                      "t52"."rank" AS "of_rank"
                    FROM (
                      SELECT
                        "t50"."run",
                        "t50"."rank",
                        "t50"."collectives",
                        CASE
                          WHEN "t50"."is_known" AND "t51"."other_is_known"
                          THEN "t51"."other_compared_with"
                          ELSE NULL
                        END AS "reference",
                        CASE
                          WHEN "t50"."is_known" AND "t51"."other_is_known"
                          THEN "t50"."offset_ns" + "t51"."other_offset_ns"
                          ELSE NULL
                        END AS "clock_offset_ns",
                        CASE
                          WHEN "t50"."is_known" AND "t51"."other_is_known"
                          THEN "t50"."error_ns" + "t51"."other_error_ns"
                          ELSE NULL
                        END AS "clock_error_ns",
                        CASE
                          WHEN "t50"."is_reference"
                          THEN 'reference'
                          ELSE CASE
                            WHEN "t50"."is_known" AND "t51"."other_is_known"
                            THEN 'estimated'
                            ELSE 'none'
                          END
                        END AS "clock"
                      FROM (
                        SELECT
                          "t47"."run",
                          "t47"."rank",
                          COALESCE("t47"."collectives", 0) AS "collectives",
                          COALESCE("t47"."compared_with", "t47"."rank") AS "compared_with",
                          CASE
                            WHEN (
                              "t47"."rank" = "t47"."lowest"
                            )
                            OR COALESCE(
                              (
                                "t47"."collectives" > 0
                              )
                              AND (
                                COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                              ),
                              FALSE
                            )
                            THEN 0
                            ELSE "t47"."median_ns"
                          END AS "offset_ns",
                          CASE
                            WHEN (
                              "t47"."rank" = "t47"."lowest"
                            )
                            OR COALESCE(
                              (
                                "t47"."collectives" > 0
                              )
                              AND (
                                COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                              ),
                              FALSE
                            )
                            THEN 0
                            ELSE COALESCE("t47"."dense_error_ns", "t47"."error_ns")
                          END AS "error_ns",
                          (
                            "t47"."rank" = "t47"."lowest"
                          )
                          OR COALESCE(
                            (
                              "t47"."collectives" > 0
                            )
                            AND (
                              COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                            ),
                            FALSE
                          ) AS "is_reference",
                          (
                            "t47"."rank" = "t47"."lowest"
                          )
                          OR COALESCE(
                            (
                              "t47"."collectives" > 0
                            )
                            AND (
                              COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                            ),
                            FALSE
                          )
                          OR COALESCE(
                            (
                              "t47"."dense_error_ns" IS NOT NULL
                            )
                            OR (
                              (
                                "t47"."has_all_pairs" > 0
                              )
                              AND (
                                ABS("t47"."median_ns") > "t47"."most_ns"
                              )
                              AND (
                                (
                                  "t47"."out_of_order" * 2
                                ) <= "t47"."collectives"
                              )
                            ),
                            FALSE
                          ) AS "is_known"
                        FROM "t46" AS "t47"
                      ) AS "t50"
                      INNER JOIN (
                        SELECT
                          "t47"."run" AS "other_run",
                          "t47"."rank" AS "other_rank",
                          COALESCE("t47"."collectives", 0) AS "other_collectives",
                          COALESCE("t47"."compared_with", "t47"."rank") AS "other_compared_with",
                          CASE
                            WHEN (
                              "t47"."rank" = "t47"."lowest"
                            )
                            OR COALESCE(
                              (
                                "t47"."collectives" > 0
                              )
                              AND (
                                COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                              ),
                              FALSE
                            )
                            THEN 0
                            ELSE "t47"."median_ns"
                          END AS "other_offset_ns",
                          CASE
                            WHEN (
                              "t47"."rank" = "t47"."lowest"
                            )
                            OR COALESCE(
                              (
                                "t47"."collectives" > 0
                              )
                              AND (
                                COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                              ),
                              FALSE
                            )
                            THEN 0
                            ELSE COALESCE("t47"."dense_error_ns", "t47"."error_ns")
                          END AS "other_error_ns",
                          (
                            "t47"."rank" = "t47"."lowest"
                          )
                          OR COALESCE(
                            (
                              "t47"."collectives" > 0
                            )
                            AND (
                              COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                            ),
                            FALSE
                          ) AS "other_is_reference",
                          (
                            "t47"."rank" = "t47"."lowest"
                          )
                          OR COALESCE(
                            (
                              "t47"."collectives" > 0
                            )
                            AND (
                              COALESCE("t47"."compared_with", "t47"."rank") = "t47"."rank"
                            ),
                            FALSE
                          )
                          OR COALESCE(
                            (
                              "t47"."dense_error_ns" IS NOT NULL
                            )
                            OR (
                              (
                                "t47"."has_all_pairs" > 0
                              )
                              AND (
                                ABS("t47"."median_ns") > "t47"."most_ns"
                              )
                              AND (
                                (
                                  "t47"."out_of_order" * 2
                                ) <= "t47"."collectives"
                              )
                            ),
                            FALSE
                          ) AS "other_is_known"
                        FROM "t46" AS "t47"
                      ) AS "t51"
                        ON "t50"."run" = "t51"."other_run" AND "t50"."compared_with" = "t51"."other_rank"
                    ) AS "t52"
                    WHERE
                      "t52"."clock" <> 'none'
                  ) AS "t54"
                    ON "t18"."run" = "t54"."of_run" AND "t18"."rank" = "t54"."of_rank"
                ) AS "t55"
              ) AS "t56"
            ) AS "t57"
          ) AS "t58"
        ) AS "t59"
        WHERE
          "t59"."ranks" > 1
      ) AS "t60"
    ) AS "t61"
  ) AS "t62"
  GROUP BY
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18
) AS "t63"
