WITH "t15" AS (
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
                      CASE
                        WHEN LOWER("t0"."demangled_name") IS NULL
                        OR 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all' IS NULL
                        THEN NULL
                        ELSE COALESCE(
                          ARRAY_LENGTH(
                            REGEXP_MATCH(
                              LOWER("t0"."demangled_name"),
                              'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all'
                            )
                          ) > 0,
                          FALSE
                        )
                      END
                      OR CASE
                        WHEN LOWER("t0"."op") IS NULL
                        OR 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all' IS NULL
                        THEN NULL
                        ELSE COALESCE(
                          ARRAY_LENGTH(
                            REGEXP_MATCH(LOWER("t0"."op"), 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all')
                          ) > 0,
                          FALSE
                        )
                      END,
                      FALSE
                    ) AS "is_named",
                    CONCAT_WS(
                      ',',
                      CAST("t0"."grid_x" AS VARCHAR),
                      CAST("t0"."grid_y" AS VARCHAR),
                      CAST("t0"."grid_z" AS VARCHAR)
                    ) AS "grid",
                    CONCAT_WS(
                      ',',
                      CAST("t0"."block_x" AS VARCHAR),
                      CAST("t0"."block_y" AS VARCHAR),
                      CAST("t0"."block_z" AS VARCHAR)
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
                      WHEN CASE
                        WHEN LOWER("t5"."name") IS NULL
                        OR 'all_?reduce|all_?gather|reduce_?scatter|broadcast' IS NULL
                        THEN NULL
                        ELSE COALESCE(
                          ARRAY_LENGTH(
                            REGEXP_MATCH(LOWER("t5"."name"), 'all_?reduce|all_?gather|reduce_?scatter|broadcast')
                          ) > 0,
                          FALSE
                        )
                      END
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
                        ORDER BY "t2"."id" DESC NULLS LAST
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
), "t32" AS (
  SELECT
    "t19"."run",
    "t19"."rank",
    "t31"."compared_with",
    "t31"."median_ns",
    "t31"."error_ns",
    "t31"."collectives",
    "t31"."most_ns"
  FROM (
    SELECT DISTINCT
      "t16"."run",
      "t16"."rank"
    FROM "t15" AS "t16"
  ) AS "t19"
  LEFT OUTER JOIN (
    SELECT
      "t29"."run" AS "of_run",
      "t29"."rank" AS "of_rank",
      "t29"."compared_with",
      "t29"."median_ns",
      "t29"."error_ns",
      "t29"."collectives",
      "t29"."most_ns"
    FROM (
      SELECT
        "t28"."run",
        "t28"."rank",
        "t28"."compared_with",
        "t28"."median_ns",
        "t28"."error_ns",
        COUNT(*) AS "collectives",
        MAX("t28"."away_ns") AS "most_ns"
      FROM (
        SELECT
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
          "t28"."start_ns",
          "t28"."duration_ns",
          "t28"."end_ns",
          "t28"."ordinal",
          "t28"."as_many",
          "t28"."first_rank",
          "t28"."apart_ns",
          "t28"."away_ns",
          "t28"."run",
          "t28"."rank",
          "t28"."compared_with",
          "t28"."median_ns",
          "t28"."error_ns"
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
            "t27"."as_many",
            "t27"."first_rank",
            "t27"."compared_with",
            "t27"."apart_ns",
            "t27"."median_ns",
            "t27"."away_ns",
            "t27"."error_ns"
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
              "t26"."as_many",
              "t26"."first_rank",
              "t26"."compared_with",
              "t26"."apart_ns",
              "t26"."median_ns",
              "t26"."away_ns",
              "t26"."place",
              "t26"."number",
              MAX(
                CASE
                  WHEN (
                    (
                      "t26"."place" * 2
                    ) = (
                      "t26"."number" - 1
                    )
                  )
                  OR (
                    (
                      "t26"."place" * 2
                    ) = (
                      "t26"."number" - 2
                    )
                  )
                  THEN "t26"."away_ns"
                  ELSE NULL
                END
              ) OVER (
                PARTITION BY "t26"."run", "t26"."rank"
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS "error_ns"
            FROM (
              SELECT
                "t25"."run",
                "t25"."step",
                "t25"."name",
                "t25"."demangled_name",
                "t25"."grid",
                "t25"."block",
                "t25"."collective",
                "t25"."group_name",
                "t25"."sequence",
                "t25"."type_name",
                "t25"."num_in_elements",
                "t25"."rank",
                "t25"."start_ns",
                "t25"."duration_ns",
                "t25"."end_ns",
                "t25"."ordinal",
                "t25"."as_many",
                "t25"."first_rank",
                "t25"."compared_with",
                "t25"."apart_ns",
                "t25"."median_ns",
                "t25"."away_ns",
                ROW_NUMBER() OVER (
                  PARTITION BY "t25"."run", "t25"."rank"
                  ORDER BY "t25"."away_ns" ASC, "t25"."step" ASC, "t25"."name" ASC, "t25"."demangled_name" ASC, "t25"."grid" ASC, "t25"."block" ASC, "t25"."collective" ASC, "t25"."group_name" ASC, "t25"."sequence" ASC, "t25"."type_name" ASC, "t25"."num_in_elements" ASC, "t25"."ordinal" ASC
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) - 1 AS "place",
                COUNT(*) OVER (
                  PARTITION BY "t25"."run", "t25"."rank"
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) AS "number"
              FROM (
                SELECT
                  "t24"."run",
                  "t24"."step",
                  "t24"."name",
                  "t24"."demangled_name",
                  "t24"."grid",
                  "t24"."block",
                  "t24"."collective",
                  "t24"."group_name",
                  "t24"."sequence",
                  "t24"."type_name",
                  "t24"."num_in_elements",
                  "t24"."rank",
                  "t24"."start_ns",
                  "t24"."duration_ns",
                  "t24"."end_ns",
                  "t24"."ordinal",
                  "t24"."as_many",
                  "t24"."first_rank",
                  "t24"."compared_with",
                  "t24"."apart_ns",
                  "t24"."median_ns",
                  ABS("t24"."apart_ns" - "t24"."median_ns") AS "away_ns"
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
                    "t23"."as_many",
                    "t23"."first_rank",
                    "t23"."compared_with",
                    "t23"."apart_ns",
                    "t23"."place",
                    "t23"."number",
                    MAX(
                      CASE
                        WHEN (
                          (
                            "t23"."place" * 2
                          ) = (
                            "t23"."number" - 1
                          )
                        )
                        OR (
                          (
                            "t23"."place" * 2
                          ) = (
                            "t23"."number" - 2
                          )
                        )
                        THEN "t23"."apart_ns"
                        ELSE NULL
                      END
                    ) OVER (
                      PARTITION BY "t23"."run", "t23"."rank"
                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                    ) AS "median_ns"
                  FROM (
                    SELECT
                      "t22"."run",
                      "t22"."step",
                      "t22"."name",
                      "t22"."demangled_name",
                      "t22"."grid",
                      "t22"."block",
                      "t22"."collective",
                      "t22"."group_name",
                      "t22"."sequence",
                      "t22"."type_name",
                      "t22"."num_in_elements",
                      "t22"."rank",
                      "t22"."start_ns",
                      "t22"."duration_ns",
                      "t22"."end_ns",
                      "t22"."ordinal",
                      "t22"."as_many",
                      "t22"."first_rank",
                      "t22"."compared_with",
                      "t22"."apart_ns",
                      ROW_NUMBER() OVER (
                        PARTITION BY "t22"."run", "t22"."rank"
                        ORDER BY "t22"."apart_ns" ASC, "t22"."step" ASC, "t22"."name" ASC, "t22"."demangled_name" ASC, "t22"."grid" ASC, "t22"."block" ASC, "t22"."collective" ASC, "t22"."group_name" ASC, "t22"."sequence" ASC, "t22"."type_name" ASC, "t22"."num_in_elements" ASC, "t22"."ordinal" ASC
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                      ) - 1 AS "place",
                      COUNT(*) OVER (
                        PARTITION BY "t22"."run", "t22"."rank"
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                      ) AS "number"
                    FROM (
                      SELECT
                        *
                      FROM (
                        SELECT
                          "t20"."run",
                          "t20"."step",
                          "t20"."name",
                          "t20"."demangled_name",
                          "t20"."grid",
                          "t20"."block",
                          "t20"."collective",
                          "t20"."group_name",
                          "t20"."sequence",
                          "t20"."type_name",
                          "t20"."num_in_elements",
                          "t20"."rank",
                          "t20"."start_ns",
                          "t20"."duration_ns",
                          "t20"."end_ns",
                          "t20"."ordinal",
                          "t20"."as_many",
                          "t20"."first_rank",
                          MIN("t20"."first_rank") OVER (
                            PARTITION BY "t20"."run", "t20"."rank"
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS "compared_with",
                          "t20"."end_ns" - MAX(CASE WHEN "t20"."rank" = "t20"."first_rank" THEN "t20"."end_ns" ELSE NULL END) OVER (
                            PARTITION BY "t20"."run", "t20"."step", "t20"."name", "t20"."demangled_name", "t20"."grid", "t20"."block", "t20"."collective", "t20"."group_name", "t20"."sequence", "t20"."type_name", "t20"."num_in_elements", "t20"."ordinal"
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS "apart_ns"
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
                            "t18"."rank",
                            "t18"."start_ns",
                            "t18"."duration_ns",
                            "t18"."end_ns",
                            "t18"."ordinal",
                            "t18"."as_many",
                            MIN("t18"."rank") OVER (
                              PARTITION BY "t18"."run", "t18"."step", "t18"."name", "t18"."demangled_name", "t18"."grid", "t18"."block", "t18"."collective", "t18"."group_name", "t18"."sequence", "t18"."type_name", "t18"."num_in_elements", "t18"."ordinal"
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ) AS "first_rank"
                          FROM (
                            SELECT
                              "t16"."run",
                              "t16"."step",
                              "t16"."name",
                              "t16"."demangled_name",
                              "t16"."grid",
                              "t16"."block",
                              "t16"."collective",
                              "t16"."group_name",
                              "t16"."sequence",
                              "t16"."type_name",
                              "t16"."num_in_elements",
                              "t16"."rank",
                              "t16"."start_ns",
                              "t16"."duration_ns",
                              "t16"."end_ns",
                              "t16"."ordinal",
                              "t16"."as_many"
                            FROM "t15" AS "t16"
                            WHERE
                              "t16"."as_many"
                          ) AS "t18"
                        ) AS "t20"
                      ) AS "t21"
                      WHERE
                        "t21"."first_rank" = "t21"."compared_with"
                    ) AS "t22"
                  ) AS "t23"
                ) AS "t24"
              ) AS "t25"
            ) AS "t26"
          ) AS "t27"
        ) AS "t28"
      ) AS t28
      GROUP BY
        "t28"."run",
        "t28"."rank",
        "t28"."compared_with",
        "t28"."median_ns",
        "t28"."error_ns"
    ) AS "t29"
  ) AS "t31"
    ON "t19"."run" = "t31"."of_run" AND "t19"."rank" = "t31"."of_rank"
)
SELECT
  "t36"."run",
  "t36"."rank",
  "t36"."collectives",
  "t37"."other_compared_with" AS "reference",
  "t36"."offset_ns" + "t37"."other_offset_ns" AS "clock_offset_ns",
  "t36"."error_ns" + "t37"."other_error_ns" AS "clock_error_ns",
  CASE
    WHEN "t36"."is_known"
    AND (
      (
        "t37"."other_compared_with" = "t37"."other_rank"
      ) OR "t37"."other_is_known"
    )
    THEN 'estimated'
    ELSE 'believed'
  END AS "clock"
FROM (
  SELECT
    "t33"."run",
    "t33"."rank",
    COALESCE("t33"."collectives", 0) AS "collectives",
    COALESCE("t33"."compared_with", "t33"."rank") AS "compared_with",
    CASE
      WHEN (
        "t33"."collectives" >= 3
      ) AND (
        ABS("t33"."median_ns") > "t33"."most_ns"
      )
      THEN "t33"."median_ns"
      ELSE 0
    END AS "offset_ns",
    CASE
      WHEN (
        "t33"."collectives" >= 3
      ) AND (
        ABS("t33"."median_ns") > "t33"."most_ns"
      )
      THEN "t33"."error_ns"
      ELSE 0
    END AS "error_ns",
    COALESCE(
      (
        "t33"."collectives" >= 3
      ) AND (
        ABS("t33"."median_ns") > "t33"."most_ns"
      ),
      FALSE
    ) AS "is_known"
  FROM "t32" AS "t33"
) AS "t36"
INNER JOIN (
  SELECT
    "t33"."run" AS "other_run",
    "t33"."rank" AS "other_rank",
    COALESCE("t33"."collectives", 0) AS "other_collectives",
    COALESCE("t33"."compared_with", "t33"."rank") AS "other_compared_with",
    CASE
      WHEN (
        "t33"."collectives" >= 3
      ) AND (
        ABS("t33"."median_ns") > "t33"."most_ns"
      )
      THEN "t33"."median_ns"
      ELSE 0
    END AS "other_offset_ns",
    CASE
      WHEN (
        "t33"."collectives" >= 3
      ) AND (
        ABS("t33"."median_ns") > "t33"."most_ns"
      )
      THEN "t33"."error_ns"
      ELSE 0
    END AS "other_error_ns",
    COALESCE(
      (
        "t33"."collectives" >= 3
      ) AND (
        ABS("t33"."median_ns") > "t33"."most_ns"
      ),
      FALSE
    ) AS "other_is_known"
  FROM "t32" AS "t33"
) AS "t37"
  ON "t36"."run" = "t37"."other_run" AND "t36"."compared_with" = "t37"."other_rank"
