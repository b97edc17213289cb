WITH `t18` AS (
  SELECT
    `t17`.`run`,
    `t17`.`step`,
    `t17`.`name`,
    `t17`.`demangled_name`,
    `t17`.`grid`,
    `t17`.`block`,
    `t17`.`collective`,
    `t17`.`group_name`,
    `t17`.`sequence`,
    `t17`.`type_name`,
    `t17`.`num_in_elements`,
    `t17`.`rank`,
    `t17`.`start_ns`,
    `t17`.`duration_ns`,
    `t17`.`end_ns`,
    `t17`.`ordinal`,
    `t17`.`most`,
    `t17`.`as_many`,
    `t17`.`of_rank`,
    `t17`.`differences`,
    `t17`.`has_all_pairs`,
    MIN(`t17`.`rank`) OVER (
      PARTITION BY `t17`.`run`, `t17`.`step`, `t17`.`name`, `t17`.`demangled_name`, `t17`.`grid`, `t17`.`block`, `t17`.`collective`, `t17`.`group_name`, `t17`.`sequence`, `t17`.`type_name`, `t17`.`num_in_elements`, `t17`.`ordinal`
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS `first_rank`,
    COUNT(*) OVER (
      PARTITION BY `t17`.`run`, `t17`.`step`, `t17`.`name`, `t17`.`demangled_name`, `t17`.`grid`, `t17`.`block`, `t17`.`collective`, `t17`.`group_name`, `t17`.`sequence`, `t17`.`type_name`, `t17`.`num_in_elements`, `t17`.`ordinal`
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS `ranks`
  FROM (
    SELECT
      `t16`.`run`,
      `t16`.`step`,
      `t16`.`name`,
      `t16`.`demangled_name`,
      `t16`.`grid`,
      `t16`.`block`,
      `t16`.`collective`,
      `t16`.`group_name`,
      `t16`.`sequence`,
      `t16`.`type_name`,
      `t16`.`num_in_elements`,
      `t16`.`rank`,
      `t16`.`start_ns`,
      `t16`.`duration_ns`,
      `t16`.`end_ns`,
      `t16`.`ordinal`,
      `t16`.`most`,
      `t16`.`as_many`,
      COUNT(*) OVER (
        PARTITION BY `t16`.`run`, `t16`.`rank`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `of_rank`,
      SUM(`t16`.`most`) OVER (
        PARTITION BY `t16`.`run`, `t16`.`rank`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `differences`,
      MIN(CAST(`t16`.`as_many` AS BIGINT)) OVER (
        PARTITION BY `t16`.`run`, `t16`.`rank`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `has_all_pairs`
    FROM (
      SELECT
        `t15`.`run`,
        `t15`.`step`,
        `t15`.`name`,
        `t15`.`demangled_name`,
        `t15`.`grid`,
        `t15`.`block`,
        `t15`.`collective`,
        `t15`.`group_name`,
        `t15`.`sequence`,
        `t15`.`type_name`,
        `t15`.`num_in_elements`,
        `t15`.`rank`,
        `t15`.`start_ns`,
        `t15`.`duration_ns`,
        `t15`.`end_ns`,
        `t15`.`ordinal`,
        `t15`.`most`,
        `t15`.`as_many`
      FROM (
        SELECT
          `t14`.`run`,
          `t14`.`step`,
          `t14`.`name`,
          `t14`.`demangled_name`,
          `t14`.`grid`,
          `t14`.`block`,
          `t14`.`collective`,
          `t14`.`group_name`,
          `t14`.`sequence`,
          `t14`.`type_name`,
          `t14`.`num_in_elements`,
          `t14`.`rank`,
          `t14`.`start_ns`,
          `t14`.`duration_ns`,
          `t14`.`end_ns`,
          `t14`.`ordinal`,
          `t14`.`number`,
          MAX(`t14`.`number`) OVER (
            PARTITION BY `t14`.`run`, `t14`.`step`, `t14`.`name`, `t14`.`demangled_name`, `t14`.`grid`, `t14`.`block`, `t14`.`collective`, `t14`.`group_name`, `t14`.`sequence`, `t14`.`type_name`, `t14`.`num_in_elements`
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) AS `most`,
          MIN(`t14`.`number`) OVER (
            PARTITION BY `t14`.`run`, `t14`.`step`, `t14`.`name`, `t14`.`demangled_name`, `t14`.`grid`, `t14`.`block`, `t14`.`collective`, `t14`.`group_name`, `t14`.`sequence`, `t14`.`type_name`, `t14`.`num_in_elements`
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) = MAX(`t14`.`number`) OVER (
            PARTITION BY `t14`.`run`, `t14`.`step`, `t14`.`name`, `t14`.`demangled_name`, `t14`.`grid`, `t14`.`block`, `t14`.`collective`, `t14`.`group_name`, `t14`.`sequence`, `t14`.`type_name`, `t14`.`num_in_elements`
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
          ) AS `as_many`
        FROM (
          SELECT
            `t13`.`run`,
            `t13`.`step`,
            `t13`.`name`,
            `t13`.`demangled_name`,
            `t13`.`grid`,
            `t13`.`block`,
            `t13`.`collective`,
            `t13`.`group_name`,
            `t13`.`sequence`,
            `t13`.`type_name`,
            `t13`.`num_in_elements`,
            `t13`.`rank`,
            `t13`.`start_ns`,
            `t13`.`duration_ns`,
            `t13`.`end_ns`,
            `t13`.`ordinal`,
            COUNT(`t13`.`ordinal`) OVER (
              PARTITION BY `t13`.`run`, `t13`.`step`, `t13`.`name`, `t13`.`demangled_name`, `t13`.`grid`, `t13`.`block`, `t13`.`collective`, `t13`.`group_name`, `t13`.`sequence`, `t13`.`type_name`, `t13`.`num_in_elements`, `t13`.`rank`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `number`
          FROM (
            SELECT
              `t12`.`run`,
              `t12`.`step`,
              `t12`.`name`,
              `t12`.`demangled_name`,
              `t12`.`grid`,
              `t12`.`block`,
              `t12`.`collective`,
              `t12`.`group_name`,
              `t12`.`sequence`,
              `t12`.`type_name`,
              `t12`.`num_in_elements`,
              `t12`.`rank`,
              `t12`.`start_ns`,
              `t12`.`duration_ns`,
              `t12`.`start_ns` + `t12`.`duration_ns` AS `end_ns`,
              ROW_NUMBER() OVER (
                PARTITION BY `t12`.`run`, `t12`.`step`, `t12`.`name`, `t12`.`demangled_name`, `t12`.`grid`, `t12`.`block`, `t12`.`collective`, `t12`.`group_name`, `t12`.`sequence`, `t12`.`type_name`, `t12`.`num_in_elements`, `t12`.`rank`
                ORDER BY `t12`.`start_ns` ASC NULLS LAST, `t12`.`id` ASC NULLS LAST
              ) - 1 AS `ordinal`
            FROM (
              SELECT
                `t11`.`run`,
                `t11`.`rank`,
                `t11`.`step`,
                `t11`.`id`,
                `t11`.`start_ns`,
                `t11`.`duration_ns`,
                `t11`.`device_id`,
                `t11`.`context_id`,
                `t11`.`stream_id`,
                `t11`.`correlation_id`,
                `t11`.`name`,
                `t11`.`grid_x`,
                `t11`.`grid_y`,
                `t11`.`grid_z`,
                `t11`.`block_x`,
                `t11`.`block_y`,
                `t11`.`block_z`,
                `t11`.`cluster_x`,
                `t11`.`cluster_y`,
                `t11`.`cluster_z`,
                `t11`.`registers_per_thread`,
                `t11`.`static_shared_bytes`,
                `t11`.`dynamic_shared_bytes`,
                `t11`.`local_bytes_per_thread`,
                `t11`.`launch_type`,
                `t11`.`graph_id`,
                `t11`.`graph_node_id`,
                `t11`.`priority`,
                `t11`.`source_graph_node_id`,
                `t11`.`captured_external_id`,
                `t11`.`graph_degree`,
                `t11`.`demangled_name`,
                `t11`.`class`,
                `t11`.`process_id`,
                `t11`.`op`,
                `t11`.`occupancy_percent`,
                `t11`.`uses_tensor_cores`,
                `t11`.`is_named`,
                `t11`.`grid`,
                `t11`.`block`,
                `t11`.`of_correlation_id`,
                `t11`.`is_stated`,
                IF(`t11`.`run_states`, `t11`.`collective`, NULL) AS `collective`,
                IF(`t11`.`run_states`, `t11`.`group_name`, NULL) AS `group_name`,
                IF(`t11`.`run_states`, `t11`.`sequence`, NULL) AS `sequence`,
                IF(`t11`.`run_states`, `t11`.`type_name`, NULL) AS `type_name`,
                IF(`t11`.`run_states`, `t11`.`num_in_elements`, NULL) AS `num_in_elements`,
                `t11`.`step_states`,
                `t11`.`run_states`
              FROM (
                SELECT
                  `t10`.`run`,
                  `t10`.`rank`,
                  `t10`.`step`,
                  `t10`.`id`,
                  `t10`.`start_ns`,
                  `t10`.`duration_ns`,
                  `t10`.`device_id`,
                  `t10`.`context_id`,
                  `t10`.`stream_id`,
                  `t10`.`correlation_id`,
                  `t10`.`name`,
                  `t10`.`grid_x`,
                  `t10`.`grid_y`,
                  `t10`.`grid_z`,
                  `t10`.`block_x`,
                  `t10`.`block_y`,
                  `t10`.`block_z`,
                  `t10`.`cluster_x`,
                  `t10`.`cluster_y`,
                  `t10`.`cluster_z`,
                  `t10`.`registers_per_thread`,
                  `t10`.`static_shared_bytes`,
                  `t10`.`dynamic_shared_bytes`,
                  `t10`.`local_bytes_per_thread`,
                  `t10`.`launch_type`,
                  `t10`.`graph_id`,
                  `t10`.`graph_node_id`,
                  `t10`.`priority`,
                  `t10`.`source_graph_node_id`,
                  `t10`.`captured_external_id`,
                  `t10`.`graph_degree`,
                  `t10`.`demangled_name`,
                  `t10`.`class`,
                  `t10`.`process_id`,
                  `t10`.`op`,
                  `t10`.`occupancy_percent`,
                  `t10`.`uses_tensor_cores`,
                  `t10`.`is_named`,
                  `t10`.`grid`,
                  `t10`.`block`,
                  `t10`.`of_correlation_id`,
                  `t10`.`is_stated`,
                  `t10`.`collective`,
                  `t10`.`group_name`,
                  `t10`.`sequence`,
                  `t10`.`type_name`,
                  `t10`.`num_in_elements`,
                  `t10`.`step_states`,
                  MIN(`t10`.`step_states`) OVER (PARTITION BY `t10`.`run` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) > 0 AS `run_states`
                FROM (
                  SELECT
                    `t9`.`run`,
                    `t9`.`rank`,
                    `t9`.`step`,
                    `t9`.`id`,
                    `t9`.`start_ns`,
                    `t9`.`duration_ns`,
                    `t9`.`device_id`,
                    `t9`.`context_id`,
                    `t9`.`stream_id`,
                    `t9`.`correlation_id`,
                    `t9`.`name`,
                    `t9`.`grid_x`,
                    `t9`.`grid_y`,
                    `t9`.`grid_z`,
                    `t9`.`block_x`,
                    `t9`.`block_y`,
                    `t9`.`block_z`,
                    `t9`.`cluster_x`,
                    `t9`.`cluster_y`,
                    `t9`.`cluster_z`,
                    `t9`.`registers_per_thread`,
                    `t9`.`static_shared_bytes`,
                    `t9`.`dynamic_shared_bytes`,
                    `t9`.`local_bytes_per_thread`,
                    `t9`.`launch_type`,
                    `t9`.`graph_id`,
                    `t9`.`graph_node_id`,
                    `t9`.`priority`,
                    `t9`.`source_graph_node_id`,
                    `t9`.`captured_external_id`,
                    `t9`.`graph_degree`,
                    `t9`.`demangled_name`,
                    `t9`.`class`,
                    `t9`.`process_id`,
                    `t9`.`op`,
                    `t9`.`occupancy_percent`,
                    `t9`.`uses_tensor_cores`,
                    `t9`.`is_named`,
                    `t9`.`grid`,
                    `t9`.`block`,
                    `t9`.`of_correlation_id`,
                    `t9`.`is_stated`,
                    `t9`.`collective`,
                    `t9`.`group_name`,
                    `t9`.`sequence`,
                    `t9`.`type_name`,
                    `t9`.`num_in_elements`,
                    MAX(`t9`.`is_stated`) OVER (
                      PARTITION BY `t9`.`run`, `t9`.`rank`, `t9`.`step`
                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                    ) AS `step_states`
                  FROM (
                    SELECT
                      `t8`.`run`,
                      `t8`.`rank`,
                      `t8`.`step`,
                      `t8`.`id`,
                      `t8`.`start_ns`,
                      `t8`.`duration_ns`,
                      `t8`.`device_id`,
                      `t8`.`context_id`,
                      `t8`.`stream_id`,
                      `t8`.`correlation_id`,
                      `t8`.`name`,
                      `t8`.`grid_x`,
                      `t8`.`grid_y`,
                      `t8`.`grid_z`,
                      `t8`.`block_x`,
                      `t8`.`block_y`,
                      `t8`.`block_z`,
                      `t8`.`cluster_x`,
                      `t8`.`cluster_y`,
                      `t8`.`cluster_z`,
                      `t8`.`registers_per_thread`,
                      `t8`.`static_shared_bytes`,
                      `t8`.`dynamic_shared_bytes`,
                      `t8`.`local_bytes_per_thread`,
                      `t8`.`launch_type`,
                      `t8`.`graph_id`,
                      `t8`.`graph_node_id`,
                      `t8`.`priority`,
                      `t8`.`source_graph_node_id`,
                      `t8`.`captured_external_id`,
                      `t8`.`graph_degree`,
                      `t8`.`demangled_name`,
                      `t8`.`class`,
                      `t8`.`process_id`,
                      `t8`.`op`,
                      `t8`.`occupancy_percent`,
                      `t8`.`uses_tensor_cores`,
                      `t8`.`is_named`,
                      `t8`.`grid`,
                      `t8`.`block`,
                      `t8`.`of_correlation_id`,
                      COALESCE(`t8`.`is_stated`, 0) AS `is_stated`,
                      `t8`.`collective`,
                      `t8`.`group_name`,
                      `t8`.`sequence`,
                      `t8`.`type_name`,
                      `t8`.`num_in_elements`
                    FROM (
                      SELECT
                        `t4`.`run`,
                        `t4`.`rank`,
                        `t4`.`step`,
                        `t4`.`id`,
                        `t4`.`start_ns`,
                        `t4`.`duration_ns`,
                        `t4`.`device_id`,
                        `t4`.`context_id`,
                        `t4`.`stream_id`,
                        `t4`.`correlation_id`,
                        `t4`.`name`,
                        `t4`.`grid_x`,
                        `t4`.`grid_y`,
                        `t4`.`grid_z`,
                        `t4`.`block_x`,
                        `t4`.`block_y`,
                        `t4`.`block_z`,
                        `t4`.`cluster_x`,
                        `t4`.`cluster_y`,
                        `t4`.`cluster_z`,
                        `t4`.`registers_per_thread`,
                        `t4`.`static_shared_bytes`,
                        `t4`.`dynamic_shared_bytes`,
                        `t4`.`local_bytes_per_thread`,
                        `t4`.`launch_type`,
                        `t4`.`graph_id`,
                        `t4`.`graph_node_id`,
                        `t4`.`priority`,
                        `t4`.`source_graph_node_id`,
                        `t4`.`captured_external_id`,
                        `t4`.`graph_degree`,
                        `t4`.`demangled_name`,
                        `t4`.`class`,
                        `t4`.`process_id`,
                        `t4`.`op`,
                        `t4`.`occupancy_percent`,
                        `t4`.`uses_tensor_cores`,
                        `t4`.`is_named`,
                        `t4`.`grid`,
                        `t4`.`block`,
                        `t4`.`of_correlation_id`,
                        `t7`.`is_stated`,
                        `t7`.`collective`,
                        `t7`.`group_name`,
                        `t7`.`sequence`,
                        `t7`.`type_name`,
                        `t7`.`num_in_elements`
                      FROM (
                        SELECT
                          `t0`.`run`,
                          `t0`.`rank`,
                          `t0`.`step`,
                          `t0`.`id`,
                          `t0`.`start_ns`,
                          `t0`.`duration_ns`,
                          `t0`.`device_id`,
                          `t0`.`context_id`,
                          `t0`.`stream_id`,
                          `t0`.`correlation_id`,
                          `t0`.`name`,
                          `t0`.`grid_x`,
                          `t0`.`grid_y`,
                          `t0`.`grid_z`,
                          `t0`.`block_x`,
                          `t0`.`block_y`,
                          `t0`.`block_z`,
                          `t0`.`cluster_x`,
                          `t0`.`cluster_y`,
                          `t0`.`cluster_z`,
                          `t0`.`registers_per_thread`,
                          `t0`.`static_shared_bytes`,
                          `t0`.`dynamic_shared_bytes`,
                          `t0`.`local_bytes_per_thread`,
                          `t0`.`launch_type`,
                          `t0`.`graph_id`,
                          `t0`.`graph_node_id`,
                          `t0`.`priority`,
                          `t0`.`source_graph_node_id`,
                          `t0`.`captured_external_id`,
                          `t0`.`graph_degree`,
                          `t0`.`demangled_name`,
                          `t0`.`class`,
                          `t0`.`process_id`,
                          `t0`.`op`,
                          `t0`.`occupancy_percent`,
                          `t0`.`uses_tensor_cores`,
                          COALESCE(
                            LOWER(`t0`.`demangled_name`) RLIKE 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all'
                            OR LOWER(`t0`.`op`) RLIKE 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all',
                            FALSE
                          ) AS `is_named`,
                          CONCAT_WS(
                            ',',
                            CAST(`t0`.`grid_x` AS STRING),
                            CAST(`t0`.`grid_y` AS STRING),
                            CAST(`t0`.`grid_z` AS STRING)
                          ) AS `grid`,
                          CONCAT_WS(
                            ',',
                            CAST(`t0`.`block_x` AS STRING),
                            CAST(`t0`.`block_y` AS STRING),
                            CAST(`t0`.`block_z` AS STRING)
                          ) AS `block`,
                          COALESCE(`t0`.`correlation_id`, 0) AS `of_correlation_id`
                        FROM `kernels` AS `t0`
                      ) AS `t4`
                      LEFT OUTER JOIN (
                        SELECT
                          `t5`.`run` AS `of_run`,
                          `t5`.`rank` AS `of_rank`,
                          `t5`.`step` AS `of_step`,
                          `t5`.`device_id` AS `of_device_id`,
                          `t5`.`context_id` AS `of_context_id`,
                          `t5`.`stream_id` AS `of_stream_id`,
                          `t5`.`start_ns` AS `of_start_ns`,
                          `t5`.`of_correlation_id` AS `of_of_correlation_id`,
                          1 AS `is_stated`,
                          IF(`t5`.`name` IN ('recv', 'send'), 'pair', NULLIF(`t5`.`name`, '')) AS `collective`,
                          NULLIF(`t5`.`group_name`, '') AS `group_name`,
                          IF(`t5`.`name` IN ('recv', 'send'), NULL, NULLIF(`t5`.`sequence`, 0)) AS `sequence`,
                          NULLIF(`t5`.`type_name`, '') AS `type_name`,
                          IF(
                            LOWER(`t5`.`name`) RLIKE 'all_?reduce|all_?gather|reduce_?scatter|broadcast',
                            NULLIF(`t5`.`num_in_elements`, 0),
                            NULL
                          ) AS `num_in_elements`
                        FROM (
                          SELECT
                            `t2`.`run`,
                            `t2`.`rank`,
                            `t2`.`step`,
                            `t2`.`id`,
                            `t2`.`start_ns`,
                            `t2`.`device_id`,
                            `t2`.`context_id`,
                            `t2`.`stream_id`,
                            `t2`.`correlation_id`,
                            `t2`.`name`,
                            `t2`.`group_name`,
                            `t2`.`group_size`,
                            `t2`.`sequence`,
                            `t2`.`num_in_elements`,
                            `t2`.`num_out_elements`,
                            `t2`.`type_name`,
                            `t2`.`of_correlation_id`,
                            ROW_NUMBER() OVER (
                              PARTITION BY `t2`.`run`, `t2`.`rank`, `t2`.`step`, `t2`.`device_id`, `t2`.`context_id`, `t2`.`stream_id`, `t2`.`start_ns`, `t2`.`of_correlation_id`
                              ORDER BY `t2`.`id` DESC
                            ) - 1 AS `place`
                          FROM (
                            SELECT
                              `t1`.`run`,
                              `t1`.`rank`,
                              `t1`.`step`,
                              `t1`.`id`,
                              `t1`.`start_ns`,
                              `t1`.`device_id`,
                              `t1`.`context_id`,
                              `t1`.`stream_id`,
                              `t1`.`correlation_id`,
                              `t1`.`name`,
                              `t1`.`group_name`,
                              `t1`.`group_size`,
                              `t1`.`sequence`,
                              `t1`.`num_in_elements`,
                              `t1`.`num_out_elements`,
                              `t1`.`type_name`,
                              COALESCE(`t1`.`correlation_id`, 0) AS `of_correlation_id`
                            FROM `collectives` AS `t1`
                          ) AS `t2`
                        ) AS `t5`
                        WHERE
                          `t5`.`place` = 0
                      ) AS `t7`
                        ON `t4`.`run` = `t7`.`of_run`
                        AND `t4`.`rank` = `t7`.`of_rank`
                        AND `t4`.`step` = `t7`.`of_step`
                        AND `t4`.`device_id` = `t7`.`of_device_id`
                        AND `t4`.`context_id` = `t7`.`of_context_id`
                        AND `t4`.`stream_id` = `t7`.`of_stream_id`
                        AND `t4`.`start_ns` = `t7`.`of_start_ns`
                        AND `t4`.`of_correlation_id` = `t7`.`of_of_correlation_id`
                    ) AS `t8`
                    WHERE
                      `t8`.`is_named` OR (
                        COALESCE(`t8`.`is_stated`, 0) > 0
                      )
                  ) AS `t9`
                ) AS `t10`
              ) AS `t11`
              WHERE
                `t11`.`is_named` OR `t11`.`run_states`
            ) AS `t12`
          ) AS `t13`
        ) AS `t14`
      ) AS `t15`
    ) AS `t16`
  ) AS `t17`
), `t44` AS (
  SELECT
    `t23`.`run`,
    `t23`.`rank`,
    `t23`.`lowest`,
    `t43`.`compared_with`,
    `t43`.`median_ns`,
    `t43`.`error_ns`,
    `t43`.`has_all_pairs`,
    `t43`.`collectives`,
    `t43`.`most_ns`,
    `t43`.`out_of_order`,
    `t43`.`dense_error_ns`
  FROM (
    SELECT
      `t20`.`run`,
      `t20`.`rank`,
      MIN(`t20`.`rank`) OVER (PARTITION BY `t20`.`run` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS `lowest`
    FROM (
      SELECT DISTINCT
        `t19`.`run`,
        `t19`.`rank`
      FROM `t18` AS `t19`
    ) AS `t20`
  ) AS `t23`
  LEFT OUTER JOIN (
    SELECT
      `t41`.`run` AS `of_run`,
      `t41`.`rank` AS `of_rank`,
      `t41`.`compared_with`,
      `t41`.`median_ns`,
      `t41`.`error_ns`,
      `t41`.`has_all_pairs`,
      `t41`.`collectives`,
      `t41`.`most_ns`,
      `t41`.`out_of_order`,
      `t41`.`dense_error_ns`
    FROM (
      SELECT
        `t40`.`run`,
        `t40`.`rank`,
        `t40`.`compared_with`,
        `t40`.`median_ns`,
        `t40`.`error_ns`,
        `t40`.`has_all_pairs`,
        COUNT(*) AS `collectives`,
        MAX(`t40`.`away_ns`) AS `most_ns`,
        SUM(
          CAST((
            `t40`.`first_end_ns` < (
              `t40`.`start_ns` - `t40`.`median_ns`
            )
          )
          OR (
            (
              `t40`.`end_ns` - `t40`.`median_ns`
            ) < `t40`.`first_start_ns`
          ) AS BIGINT)
        ) AS `out_of_order`,
        MAX(`t40`.`dense_error_ns`) AS `dense_error_ns`
      FROM (
        SELECT
          `t39`.`run`,
          `t39`.`step`,
          `t39`.`name`,
          `t39`.`demangled_name`,
          `t39`.`grid`,
          `t39`.`block`,
          `t39`.`collective`,
          `t39`.`group_name`,
          `t39`.`sequence`,
          `t39`.`type_name`,
          `t39`.`num_in_elements`,
          `t39`.`rank`,
          `t39`.`start_ns`,
          `t39`.`duration_ns`,
          `t39`.`end_ns`,
          `t39`.`ordinal`,
          `t39`.`most`,
          `t39`.`as_many`,
          `t39`.`of_rank`,
          `t39`.`differences`,
          `t39`.`has_all_pairs`,
          `t39`.`first_rank`,
          `t39`.`ranks`,
          `t39`.`compared_with`,
          `t39`.`first_start_ns`,
          `t39`.`first_end_ns`,
          `t39`.`apart_ns`,
          `t39`.`median_ns`,
          `t39`.`away_ns`,
          `t39`.`error_ns`,
          `t39`.`nearest`,
          `t39`.`width_ns`,
          `t39`.`range_ns`,
          `t39`.`elapsed_ns`,
          `t39`.`likelihood`,
          `t39`.`greatest`,
          `t39`.`best`,
          `t39`.`least` + CAST(FLOOR(CAST(`t39`.`most_of_two` - `t39`.`least` AS DOUBLE) / 2.0) AS BIGINT) AS `dense_error_ns`
        FROM (
          SELECT
            `t38`.`run`,
            `t38`.`step`,
            `t38`.`name`,
            `t38`.`demangled_name`,
            `t38`.`grid`,
            `t38`.`block`,
            `t38`.`collective`,
            `t38`.`group_name`,
            `t38`.`sequence`,
            `t38`.`type_name`,
            `t38`.`num_in_elements`,
            `t38`.`rank`,
            `t38`.`start_ns`,
            `t38`.`duration_ns`,
            `t38`.`end_ns`,
            `t38`.`ordinal`,
            `t38`.`most`,
            `t38`.`as_many`,
            `t38`.`of_rank`,
            `t38`.`differences`,
            `t38`.`has_all_pairs`,
            `t38`.`first_rank`,
            `t38`.`ranks`,
            `t38`.`compared_with`,
            `t38`.`first_start_ns`,
            `t38`.`first_end_ns`,
            `t38`.`apart_ns`,
            `t38`.`median_ns`,
            `t38`.`away_ns`,
            `t38`.`error_ns`,
            `t38`.`nearest`,
            `t38`.`width_ns`,
            `t38`.`range_ns`,
            `t38`.`elapsed_ns`,
            `t38`.`likelihood`,
            `t38`.`greatest`,
            `t38`.`best`,
            `t38`.`middle`,
            MIN(`t38`.`middle`) OVER (
              PARTITION BY `t38`.`run`, `t38`.`rank`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `least`,
            MAX(`t38`.`middle`) OVER (
              PARTITION BY `t38`.`run`, `t38`.`rank`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `most_of_two`
          FROM (
            SELECT
              `t37`.`run`,
              `t37`.`step`,
              `t37`.`name`,
              `t37`.`demangled_name`,
              `t37`.`grid`,
              `t37`.`block`,
              `t37`.`collective`,
              `t37`.`group_name`,
              `t37`.`sequence`,
              `t37`.`type_name`,
              `t37`.`num_in_elements`,
              `t37`.`rank`,
              `t37`.`start_ns`,
              `t37`.`duration_ns`,
              `t37`.`end_ns`,
              `t37`.`ordinal`,
              `t37`.`most`,
              `t37`.`as_many`,
              `t37`.`of_rank`,
              `t37`.`differences`,
              `t37`.`has_all_pairs`,
              `t37`.`first_rank`,
              `t37`.`ranks`,
              `t37`.`compared_with`,
              `t37`.`first_start_ns`,
              `t37`.`first_end_ns`,
              `t37`.`apart_ns`,
              `t37`.`median_ns`,
              `t37`.`away_ns`,
              `t37`.`error_ns`,
              `t37`.`nearest`,
              `t37`.`width_ns`,
              `t37`.`range_ns`,
              `t37`.`elapsed_ns`,
              `t37`.`likelihood`,
              `t37`.`greatest`,
              `t37`.`best`,
              IF(
                (
                  (
                    `t37`.`nearest` * 2
                  ) >= `t37`.`best`
                )
                AND (
                  (
                    `t37`.`nearest` * 2
                  ) <= (
                    `t37`.`best` + 2
                  )
                ),
                `t37`.`away_ns`,
                NULL
              ) AS `middle`
            FROM (
              SELECT
                `t36`.`run`,
                `t36`.`step`,
                `t36`.`name`,
                `t36`.`demangled_name`,
                `t36`.`grid`,
                `t36`.`block`,
                `t36`.`collective`,
                `t36`.`group_name`,
                `t36`.`sequence`,
                `t36`.`type_name`,
                `t36`.`num_in_elements`,
                `t36`.`rank`,
                `t36`.`start_ns`,
                `t36`.`duration_ns`,
                `t36`.`end_ns`,
                `t36`.`ordinal`,
                `t36`.`most`,
                `t36`.`as_many`,
                `t36`.`of_rank`,
                `t36`.`differences`,
                `t36`.`has_all_pairs`,
                `t36`.`first_rank`,
                `t36`.`ranks`,
                `t36`.`compared_with`,
                `t36`.`first_start_ns`,
                `t36`.`first_end_ns`,
                `t36`.`apart_ns`,
                `t36`.`median_ns`,
                `t36`.`away_ns`,
                `t36`.`error_ns`,
                `t36`.`nearest`,
                `t36`.`width_ns`,
                `t36`.`range_ns`,
                `t36`.`elapsed_ns`,
                `t36`.`likelihood`,
                `t36`.`greatest`,
                MAX(IF(`t36`.`likelihood` = `t36`.`greatest`, `t36`.`nearest`, NULL)) OVER (
                  PARTITION BY `t36`.`run`, `t36`.`rank`
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ) AS `best`
              FROM (
                SELECT
                  `t35`.`run`,
                  `t35`.`step`,
                  `t35`.`name`,
                  `t35`.`demangled_name`,
                  `t35`.`grid`,
                  `t35`.`block`,
                  `t35`.`collective`,
                  `t35`.`group_name`,
                  `t35`.`sequence`,
                  `t35`.`type_name`,
                  `t35`.`num_in_elements`,
                  `t35`.`rank`,
                  `t35`.`start_ns`,
                  `t35`.`duration_ns`,
                  `t35`.`end_ns`,
                  `t35`.`ordinal`,
                  `t35`.`most`,
                  `t35`.`as_many`,
                  `t35`.`of_rank`,
                  `t35`.`differences`,
                  `t35`.`has_all_pairs`,
                  `t35`.`first_rank`,
                  `t35`.`ranks`,
                  `t35`.`compared_with`,
                  `t35`.`first_start_ns`,
                  `t35`.`first_end_ns`,
                  `t35`.`apart_ns`,
                  `t35`.`median_ns`,
                  `t35`.`away_ns`,
                  `t35`.`error_ns`,
                  `t35`.`nearest`,
                  `t35`.`width_ns`,
                  `t35`.`range_ns`,
                  `t35`.`elapsed_ns`,
                  `t35`.`likelihood`,
                  MAX(`t35`.`likelihood`) OVER (
                    PARTITION BY `t35`.`run`, `t35`.`rank`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `greatest`
                FROM (
                  SELECT
                    `t34`.`run`,
                    `t34`.`step`,
                    `t34`.`name`,
                    `t34`.`demangled_name`,
                    `t34`.`grid`,
                    `t34`.`block`,
                    `t34`.`collective`,
                    `t34`.`group_name`,
                    `t34`.`sequence`,
                    `t34`.`type_name`,
                    `t34`.`num_in_elements`,
                    `t34`.`rank`,
                    `t34`.`start_ns`,
                    `t34`.`duration_ns`,
                    `t34`.`end_ns`,
                    `t34`.`ordinal`,
                    `t34`.`most`,
                    `t34`.`as_many`,
                    `t34`.`of_rank`,
                    `t34`.`differences`,
                    `t34`.`has_all_pairs`,
                    `t34`.`first_rank`,
                    `t34`.`ranks`,
                    `t34`.`compared_with`,
                    `t34`.`first_start_ns`,
                    `t34`.`first_end_ns`,
                    `t34`.`apart_ns`,
                    `t34`.`median_ns`,
                    `t34`.`away_ns`,
                    `t34`.`error_ns`,
                    `t34`.`nearest`,
                    `t34`.`width_ns`,
                    `t34`.`range_ns`,
                    `t34`.`elapsed_ns`,
                    IF(
                      (
                        `t34`.`nearest` > 1
                      )
                      AND (
                        CAST(CAST(FLOOR((
                          (
                            `t34`.`nearest` + 1
                          ) * 15
                        ) / (
                          16
                        )) AS BIGINT) AS DOUBLE) > (
                          (
                            CAST(GREATEST(`t34`.`width_ns`, 1000) AS DOUBLE) * 2.0 * CAST(`t34`.`differences` AS DOUBLE)
                          ) / CAST(GREATEST(
                            MAX(`t34`.`range_ns`) OVER (
                              PARTITION BY `t34`.`run`, `t34`.`rank`
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            MAX(`t34`.`elapsed_ns`) OVER (
                              PARTITION BY `t34`.`run`, `t34`.`rank`
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
                                `t34`.`nearest` + 1
                              ) * 15
                            ) / (
                              16
                            )) AS BIGINT) AS DOUBLE) * LN(
                              CAST(CAST(FLOOR((
                                (
                                  `t34`.`nearest` + 1
                                ) * 15
                              ) / (
                                16
                              )) AS BIGINT) AS DOUBLE) / (
                                (
                                  CAST(GREATEST(`t34`.`width_ns`, 1000) AS DOUBLE) * 2.0 * CAST(`t34`.`differences` AS DOUBLE)
                                ) / CAST(GREATEST(
                                  MAX(`t34`.`range_ns`) OVER (
                                    PARTITION BY `t34`.`run`, `t34`.`rank`
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ),
                                  MAX(`t34`.`elapsed_ns`) OVER (
                                    PARTITION BY `t34`.`run`, `t34`.`rank`
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ),
                                  1000
                                ) AS DOUBLE)
                              )
                            )
                          ) - (
                            CAST(CAST(FLOOR((
                              (
                                `t34`.`nearest` + 1
                              ) * 15
                            ) / (
                              16
                            )) AS BIGINT) AS DOUBLE) - (
                              (
                                CAST(GREATEST(`t34`.`width_ns`, 1000) AS DOUBLE) * 2.0 * CAST(`t34`.`differences` AS DOUBLE)
                              ) / CAST(GREATEST(
                                MAX(`t34`.`range_ns`) OVER (
                                  PARTITION BY `t34`.`run`, `t34`.`rank`
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                ),
                                MAX(`t34`.`elapsed_ns`) OVER (
                                  PARTITION BY `t34`.`run`, `t34`.`rank`
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                ),
                                1000
                              ) AS DOUBLE)
                            )
                          )
                        ) > LN(
                          (
                            CAST(`t34`.`differences` AS DOUBLE) * LEAST(
                              CAST(`t34`.`of_rank` AS DOUBLE),
                              (
                                LN(GREATEST(CAST(`t34`.`of_rank` AS DOUBLE) / 16.0, 1.0)) * 16.0
                              ) + 16.0
                            )
                          ) / 0.001
                        )
                      ),
                      (
                        CAST(CAST(FLOOR((
                          (
                            `t34`.`nearest` + 1
                          ) * 15
                        ) / (
                          16
                        )) AS BIGINT) AS DOUBLE) * LN(
                          CAST(CAST(FLOOR((
                            (
                              `t34`.`nearest` + 1
                            ) * 15
                          ) / (
                            16
                          )) AS BIGINT) AS DOUBLE) / (
                            (
                              CAST(GREATEST(`t34`.`width_ns`, 1000) AS DOUBLE) * 2.0 * CAST(`t34`.`differences` AS DOUBLE)
                            ) / CAST(GREATEST(
                              MAX(`t34`.`range_ns`) OVER (
                                PARTITION BY `t34`.`run`, `t34`.`rank`
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ),
                              MAX(`t34`.`elapsed_ns`) OVER (
                                PARTITION BY `t34`.`run`, `t34`.`rank`
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ),
                              1000
                            ) AS DOUBLE)
                          )
                        )
                      ) - (
                        CAST(CAST(FLOOR((
                          (
                            `t34`.`nearest` + 1
                          ) * 15
                        ) / (
                          16
                        )) AS BIGINT) AS DOUBLE) - (
                          (
                            CAST(GREATEST(`t34`.`width_ns`, 1000) AS DOUBLE) * 2.0 * CAST(`t34`.`differences` AS DOUBLE)
                          ) / CAST(GREATEST(
                            MAX(`t34`.`range_ns`) OVER (
                              PARTITION BY `t34`.`run`, `t34`.`rank`
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            MAX(`t34`.`elapsed_ns`) OVER (
                              PARTITION BY `t34`.`run`, `t34`.`rank`
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ),
                            1000
                          ) AS DOUBLE)
                        )
                      ),
                      NULL
                    ) AS `likelihood`
                  FROM (
                    SELECT
                      `t33`.`run`,
                      `t33`.`step`,
                      `t33`.`name`,
                      `t33`.`demangled_name`,
                      `t33`.`grid`,
                      `t33`.`block`,
                      `t33`.`collective`,
                      `t33`.`group_name`,
                      `t33`.`sequence`,
                      `t33`.`type_name`,
                      `t33`.`num_in_elements`,
                      `t33`.`rank`,
                      `t33`.`start_ns`,
                      `t33`.`duration_ns`,
                      `t33`.`end_ns`,
                      `t33`.`ordinal`,
                      `t33`.`most`,
                      `t33`.`as_many`,
                      `t33`.`of_rank`,
                      `t33`.`differences`,
                      `t33`.`has_all_pairs`,
                      `t33`.`first_rank`,
                      `t33`.`ranks`,
                      `t33`.`compared_with`,
                      `t33`.`first_start_ns`,
                      `t33`.`first_end_ns`,
                      `t33`.`apart_ns`,
                      `t33`.`median_ns`,
                      `t33`.`away_ns`,
                      `t33`.`error_ns`,
                      (
                        ROW_NUMBER() OVER (
                          PARTITION BY `t33`.`run`, `t33`.`rank`
                          ORDER BY `t33`.`away_ns` ASC NULLS LAST, `t33`.`step` ASC NULLS LAST, `t33`.`name` ASC NULLS LAST, `t33`.`demangled_name` ASC NULLS LAST, `t33`.`grid` ASC NULLS LAST, `t33`.`block` ASC NULLS LAST, `t33`.`collective` ASC NULLS LAST, `t33`.`group_name` ASC NULLS LAST, `t33`.`sequence` ASC NULLS LAST, `t33`.`type_name` ASC NULLS LAST, `t33`.`num_in_elements` ASC NULLS LAST, `t33`.`ordinal` ASC NULLS LAST
                        ) - 1
                      ) + 1 AS `nearest`,
                      MAX(`t33`.`apart_ns`) OVER (
                        PARTITION BY `t33`.`run`, `t33`.`rank`
                        ORDER BY `t33`.`away_ns` ASC NULLS LAST, `t33`.`step` ASC NULLS LAST, `t33`.`name` ASC NULLS LAST, `t33`.`demangled_name` ASC NULLS LAST, `t33`.`grid` ASC NULLS LAST, `t33`.`block` ASC NULLS LAST, `t33`.`collective` ASC NULLS LAST, `t33`.`group_name` ASC NULLS LAST, `t33`.`sequence` ASC NULLS LAST, `t33`.`type_name` ASC NULLS LAST, `t33`.`num_in_elements` ASC NULLS LAST, `t33`.`ordinal` ASC NULLS LAST
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                      ) - MIN(`t33`.`apart_ns`) OVER (
                        PARTITION BY `t33`.`run`, `t33`.`rank`
                        ORDER BY `t33`.`away_ns` ASC NULLS LAST, `t33`.`step` ASC NULLS LAST, `t33`.`name` ASC NULLS LAST, `t33`.`demangled_name` ASC NULLS LAST, `t33`.`grid` ASC NULLS LAST, `t33`.`block` ASC NULLS LAST, `t33`.`collective` ASC NULLS LAST, `t33`.`group_name` ASC NULLS LAST, `t33`.`sequence` ASC NULLS LAST, `t33`.`type_name` ASC NULLS LAST, `t33`.`num_in_elements` ASC NULLS LAST, `t33`.`ordinal` ASC NULLS LAST
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                      ) AS `width_ns`,
                      (
                        (
                          MAX(`t33`.`end_ns`) OVER (
                            PARTITION BY `t33`.`run`, `t33`.`step`, `t33`.`name`, `t33`.`demangled_name`, `t33`.`grid`, `t33`.`block`, `t33`.`collective`, `t33`.`group_name`, `t33`.`sequence`, `t33`.`type_name`, `t33`.`num_in_elements`, `t33`.`rank`
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) - MIN(`t33`.`end_ns`) OVER (
                            PARTITION BY `t33`.`run`, `t33`.`step`, `t33`.`name`, `t33`.`demangled_name`, `t33`.`grid`, `t33`.`block`, `t33`.`collective`, `t33`.`group_name`, `t33`.`sequence`, `t33`.`type_name`, `t33`.`num_in_elements`, `t33`.`rank`
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          )
                        ) + MAX(`t33`.`first_end_ns`) OVER (
                          PARTITION BY `t33`.`run`, `t33`.`step`, `t33`.`name`, `t33`.`demangled_name`, `t33`.`grid`, `t33`.`block`, `t33`.`collective`, `t33`.`group_name`, `t33`.`sequence`, `t33`.`type_name`, `t33`.`num_in_elements`, `t33`.`rank`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        )
                      ) - MIN(`t33`.`first_end_ns`) OVER (
                        PARTITION BY `t33`.`run`, `t33`.`step`, `t33`.`name`, `t33`.`demangled_name`, `t33`.`grid`, `t33`.`block`, `t33`.`collective`, `t33`.`group_name`, `t33`.`sequence`, `t33`.`type_name`, `t33`.`num_in_elements`, `t33`.`rank`
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                      ) AS `range_ns`,
                      GREATEST(
                        MAX(`t33`.`end_ns`) OVER (
                          PARTITION BY `t33`.`run`, `t33`.`rank`, `t33`.`step`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - MIN(`t33`.`end_ns`) OVER (
                          PARTITION BY `t33`.`run`, `t33`.`rank`, `t33`.`step`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ),
                        MAX(`t33`.`first_end_ns`) OVER (
                          PARTITION BY `t33`.`run`, `t33`.`rank`, `t33`.`step`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) - MIN(`t33`.`first_end_ns`) OVER (
                          PARTITION BY `t33`.`run`, `t33`.`rank`, `t33`.`step`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        )
                      ) AS `elapsed_ns`
                    FROM (
                      SELECT
                        `t32`.`run`,
                        `t32`.`step`,
                        `t32`.`name`,
                        `t32`.`demangled_name`,
                        `t32`.`grid`,
                        `t32`.`block`,
                        `t32`.`collective`,
                        `t32`.`group_name`,
                        `t32`.`sequence`,
                        `t32`.`type_name`,
                        `t32`.`num_in_elements`,
                        `t32`.`rank`,
                        `t32`.`start_ns`,
                        `t32`.`duration_ns`,
                        `t32`.`end_ns`,
                        `t32`.`ordinal`,
                        `t32`.`most`,
                        `t32`.`as_many`,
                        `t32`.`of_rank`,
                        `t32`.`differences`,
                        `t32`.`has_all_pairs`,
                        `t32`.`first_rank`,
                        `t32`.`ranks`,
                        `t32`.`compared_with`,
                        `t32`.`first_start_ns`,
                        `t32`.`first_end_ns`,
                        `t32`.`apart_ns`,
                        `t32`.`median_ns`,
                        `t32`.`away_ns`,
                        `t32`.`least` + CAST(FLOOR(CAST(`t32`.`most_of_two` - `t32`.`least` AS DOUBLE) / 2.0) AS BIGINT) AS `error_ns`
                      FROM (
                        SELECT
                          `t31`.`run`,
                          `t31`.`step`,
                          `t31`.`name`,
                          `t31`.`demangled_name`,
                          `t31`.`grid`,
                          `t31`.`block`,
                          `t31`.`collective`,
                          `t31`.`group_name`,
                          `t31`.`sequence`,
                          `t31`.`type_name`,
                          `t31`.`num_in_elements`,
                          `t31`.`rank`,
                          `t31`.`start_ns`,
                          `t31`.`duration_ns`,
                          `t31`.`end_ns`,
                          `t31`.`ordinal`,
                          `t31`.`most`,
                          `t31`.`as_many`,
                          `t31`.`of_rank`,
                          `t31`.`differences`,
                          `t31`.`has_all_pairs`,
                          `t31`.`first_rank`,
                          `t31`.`ranks`,
                          `t31`.`compared_with`,
                          `t31`.`first_start_ns`,
                          `t31`.`first_end_ns`,
                          `t31`.`apart_ns`,
                          `t31`.`median_ns`,
                          `t31`.`away_ns`,
                          `t31`.`place`,
                          `t31`.`number`,
                          `t31`.`middle`,
                          MIN(`t31`.`middle`) OVER (
                            PARTITION BY `t31`.`run`, `t31`.`rank`
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS `least`,
                          MAX(`t31`.`middle`) OVER (
                            PARTITION BY `t31`.`run`, `t31`.`rank`
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS `most_of_two`
                        FROM (
                          SELECT
                            `t30`.`run`,
                            `t30`.`step`,
                            `t30`.`name`,
                            `t30`.`demangled_name`,
                            `t30`.`grid`,
                            `t30`.`block`,
                            `t30`.`collective`,
                            `t30`.`group_name`,
                            `t30`.`sequence`,
                            `t30`.`type_name`,
                            `t30`.`num_in_elements`,
                            `t30`.`rank`,
                            `t30`.`start_ns`,
                            `t30`.`duration_ns`,
                            `t30`.`end_ns`,
                            `t30`.`ordinal`,
                            `t30`.`most`,
                            `t30`.`as_many`,
                            `t30`.`of_rank`,
                            `t30`.`differences`,
                            `t30`.`has_all_pairs`,
                            `t30`.`first_rank`,
                            `t30`.`ranks`,
                            `t30`.`compared_with`,
                            `t30`.`first_start_ns`,
                            `t30`.`first_end_ns`,
                            `t30`.`apart_ns`,
                            `t30`.`median_ns`,
                            `t30`.`away_ns`,
                            `t30`.`place`,
                            `t30`.`number`,
                            IF(
                              (
                                (
                                  `t30`.`place` * 2
                                ) >= (
                                  `t30`.`number` - 2
                                )
                              )
                              AND (
                                (
                                  `t30`.`place` * 2
                                ) <= `t30`.`number`
                              ),
                              `t30`.`away_ns`,
                              NULL
                            ) AS `middle`
                          FROM (
                            SELECT
                              `t29`.`run`,
                              `t29`.`step`,
                              `t29`.`name`,
                              `t29`.`demangled_name`,
                              `t29`.`grid`,
                              `t29`.`block`,
                              `t29`.`collective`,
                              `t29`.`group_name`,
                              `t29`.`sequence`,
                              `t29`.`type_name`,
                              `t29`.`num_in_elements`,
                              `t29`.`rank`,
                              `t29`.`start_ns`,
                              `t29`.`duration_ns`,
                              `t29`.`end_ns`,
                              `t29`.`ordinal`,
                              `t29`.`most`,
                              `t29`.`as_many`,
                              `t29`.`of_rank`,
                              `t29`.`differences`,
                              `t29`.`has_all_pairs`,
                              `t29`.`first_rank`,
                              `t29`.`ranks`,
                              `t29`.`compared_with`,
                              `t29`.`first_start_ns`,
                              `t29`.`first_end_ns`,
                              `t29`.`apart_ns`,
                              `t29`.`median_ns`,
                              `t29`.`away_ns`,
                              ROW_NUMBER() OVER (
                                PARTITION BY `t29`.`run`, `t29`.`rank`
                                ORDER BY `t29`.`away_ns` ASC NULLS LAST, `t29`.`step` ASC NULLS LAST, `t29`.`name` ASC NULLS LAST, `t29`.`demangled_name` ASC NULLS LAST, `t29`.`grid` ASC NULLS LAST, `t29`.`block` ASC NULLS LAST, `t29`.`collective` ASC NULLS LAST, `t29`.`group_name` ASC NULLS LAST, `t29`.`sequence` ASC NULLS LAST, `t29`.`type_name` ASC NULLS LAST, `t29`.`num_in_elements` ASC NULLS LAST, `t29`.`ordinal` ASC NULLS LAST
                              ) - 1 AS `place`,
                              COUNT(*) OVER (
                                PARTITION BY `t29`.`run`, `t29`.`rank`
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ) AS `number`
                            FROM (
                              SELECT
                                `t28`.`run`,
                                `t28`.`step`,
                                `t28`.`name`,
                                `t28`.`demangled_name`,
                                `t28`.`grid`,
                                `t28`.`block`,
                                `t28`.`collective`,
                                `t28`.`group_name`,
                                `t28`.`sequence`,
                                `t28`.`type_name`,
                                `t28`.`num_in_elements`,
                                `t28`.`rank`,
                                `t28`.`start_ns`,
                                `t28`.`duration_ns`,
                                `t28`.`end_ns`,
                                `t28`.`ordinal`,
                                `t28`.`most`,
                                `t28`.`as_many`,
                                `t28`.`of_rank`,
                                `t28`.`differences`,
                                `t28`.`has_all_pairs`,
                                `t28`.`first_rank`,
                                `t28`.`ranks`,
                                `t28`.`compared_with`,
                                `t28`.`first_start_ns`,
                                `t28`.`first_end_ns`,
                                `t28`.`apart_ns`,
                                `t28`.`least` + CAST(FLOOR(CAST(`t28`.`most_of_two` - `t28`.`least` AS DOUBLE) / 2.0) AS BIGINT) AS `median_ns`,
                                ABS(
                                  `t28`.`apart_ns` - (
                                    `t28`.`least` + CAST(FLOOR(CAST(`t28`.`most_of_two` - `t28`.`least` AS DOUBLE) / 2.0) AS BIGINT)
                                  )
                                ) AS `away_ns`
                              FROM (
                                SELECT
                                  `t27`.`run`,
                                  `t27`.`step`,
                                  `t27`.`name`,
                                  `t27`.`demangled_name`,
                                  `t27`.`grid`,
                                  `t27`.`block`,
                                  `t27`.`collective`,
                                  `t27`.`group_name`,
                                  `t27`.`sequence`,
                                  `t27`.`type_name`,
                                  `t27`.`num_in_elements`,
                                  `t27`.`rank`,
                                  `t27`.`start_ns`,
                                  `t27`.`duration_ns`,
                                  `t27`.`end_ns`,
                                  `t27`.`ordinal`,
                                  `t27`.`most`,
                                  `t27`.`as_many`,
                                  `t27`.`of_rank`,
                                  `t27`.`differences`,
                                  `t27`.`has_all_pairs`,
                                  `t27`.`first_rank`,
                                  `t27`.`ranks`,
                                  `t27`.`compared_with`,
                                  `t27`.`first_start_ns`,
                                  `t27`.`first_end_ns`,
                                  `t27`.`apart_ns`,
                                  `t27`.`place`,
                                  `t27`.`number`,
                                  `t27`.`middle`,
                                  MIN(`t27`.`middle`) OVER (
                                    PARTITION BY `t27`.`run`, `t27`.`rank`
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ) AS `least`,
                                  MAX(`t27`.`middle`) OVER (
                                    PARTITION BY `t27`.`run`, `t27`.`rank`
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ) AS `most_of_two`
                                FROM (
                                  SELECT
                                    `t26`.`run`,
                                    `t26`.`step`,
                                    `t26`.`name`,
                                    `t26`.`demangled_name`,
                                    `t26`.`grid`,
                                    `t26`.`block`,
                                    `t26`.`collective`,
                                    `t26`.`group_name`,
                                    `t26`.`sequence`,
                                    `t26`.`type_name`,
                                    `t26`.`num_in_elements`,
                                    `t26`.`rank`,
                                    `t26`.`start_ns`,
                                    `t26`.`duration_ns`,
                                    `t26`.`end_ns`,
                                    `t26`.`ordinal`,
                                    `t26`.`most`,
                                    `t26`.`as_many`,
                                    `t26`.`of_rank`,
                                    `t26`.`differences`,
                                    `t26`.`has_all_pairs`,
                                    `t26`.`first_rank`,
                                    `t26`.`ranks`,
                                    `t26`.`compared_with`,
                                    `t26`.`first_start_ns`,
                                    `t26`.`first_end_ns`,
                                    `t26`.`apart_ns`,
                                    `t26`.`place`,
                                    `t26`.`number`,
                                    IF(
                                      (
                                        (
                                          `t26`.`place` * 2
                                        ) >= (
                                          `t26`.`number` - 2
                                        )
                                      )
                                      AND (
                                        (
                                          `t26`.`place` * 2
                                        ) <= `t26`.`number`
                                      ),
                                      `t26`.`apart_ns`,
                                      NULL
                                    ) AS `middle`
                                  FROM (
                                    SELECT
                                      `t25`.`run`,
                                      `t25`.`step`,
                                      `t25`.`name`,
                                      `t25`.`demangled_name`,
                                      `t25`.`grid`,
                                      `t25`.`block`,
                                      `t25`.`collective`,
                                      `t25`.`group_name`,
                                      `t25`.`sequence`,
                                      `t25`.`type_name`,
                                      `t25`.`num_in_elements`,
                                      `t25`.`rank`,
                                      `t25`.`start_ns`,
                                      `t25`.`duration_ns`,
                                      `t25`.`end_ns`,
                                      `t25`.`ordinal`,
                                      `t25`.`most`,
                                      `t25`.`as_many`,
                                      `t25`.`of_rank`,
                                      `t25`.`differences`,
                                      `t25`.`has_all_pairs`,
                                      `t25`.`first_rank`,
                                      `t25`.`ranks`,
                                      `t25`.`compared_with`,
                                      `t25`.`first_start_ns`,
                                      `t25`.`first_end_ns`,
                                      `t25`.`apart_ns`,
                                      ROW_NUMBER() OVER (
                                        PARTITION BY `t25`.`run`, `t25`.`rank`
                                        ORDER BY `t25`.`apart_ns` ASC NULLS LAST, `t25`.`step` ASC NULLS LAST, `t25`.`name` ASC NULLS LAST, `t25`.`demangled_name` ASC NULLS LAST, `t25`.`grid` ASC NULLS LAST, `t25`.`block` ASC NULLS LAST, `t25`.`collective` ASC NULLS LAST, `t25`.`group_name` ASC NULLS LAST, `t25`.`sequence` ASC NULLS LAST, `t25`.`type_name` ASC NULLS LAST, `t25`.`num_in_elements` ASC NULLS LAST, `t25`.`ordinal` ASC NULLS LAST
                                      ) - 1 AS `place`,
                                      COUNT(*) OVER (
                                        PARTITION BY `t25`.`run`, `t25`.`rank`
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                      ) AS `number`
                                    FROM (
                                      SELECT
                                        `t24`.`run`,
                                        `t24`.`step`,
                                        `t24`.`name`,
                                        `t24`.`demangled_name`,
                                        `t24`.`grid`,
                                        `t24`.`block`,
                                        `t24`.`collective`,
                                        `t24`.`group_name`,
                                        `t24`.`sequence`,
                                        `t24`.`type_name`,
                                        `t24`.`num_in_elements`,
                                        `t24`.`rank`,
                                        `t24`.`start_ns`,
                                        `t24`.`duration_ns`,
                                        `t24`.`end_ns`,
                                        `t24`.`ordinal`,
                                        `t24`.`most`,
                                        `t24`.`as_many`,
                                        `t24`.`of_rank`,
                                        `t24`.`differences`,
                                        `t24`.`has_all_pairs`,
                                        `t24`.`first_rank`,
                                        `t24`.`ranks`,
                                        `t24`.`compared_with`,
                                        `t24`.`first_start_ns`,
                                        `t24`.`first_end_ns`,
                                        `t24`.`end_ns` - `t24`.`first_end_ns` AS `apart_ns`
                                      FROM (
                                        SELECT
                                          `t21`.`run`,
                                          `t21`.`step`,
                                          `t21`.`name`,
                                          `t21`.`demangled_name`,
                                          `t21`.`grid`,
                                          `t21`.`block`,
                                          `t21`.`collective`,
                                          `t21`.`group_name`,
                                          `t21`.`sequence`,
                                          `t21`.`type_name`,
                                          `t21`.`num_in_elements`,
                                          `t21`.`rank`,
                                          `t21`.`start_ns`,
                                          `t21`.`duration_ns`,
                                          `t21`.`end_ns`,
                                          `t21`.`ordinal`,
                                          `t21`.`most`,
                                          `t21`.`as_many`,
                                          `t21`.`of_rank`,
                                          `t21`.`differences`,
                                          `t21`.`has_all_pairs`,
                                          `t21`.`first_rank`,
                                          `t21`.`ranks`,
                                          MIN(`t21`.`first_rank`) OVER (
                                            PARTITION BY `t21`.`run`, `t21`.`rank`
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                          ) AS `compared_with`,
                                          MAX(IF(`t21`.`rank` = `t21`.`first_rank`, `t21`.`start_ns`, NULL)) OVER (
                                            PARTITION BY `t21`.`run`, `t21`.`step`, `t21`.`name`, `t21`.`demangled_name`, `t21`.`grid`, `t21`.`block`, `t21`.`collective`, `t21`.`group_name`, `t21`.`sequence`, `t21`.`type_name`, `t21`.`num_in_elements`, `t21`.`ordinal`
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                          ) AS `first_start_ns`,
                                          MAX(IF(`t21`.`rank` = `t21`.`first_rank`, `t21`.`end_ns`, NULL)) OVER (
                                            PARTITION BY `t21`.`run`, `t21`.`step`, `t21`.`name`, `t21`.`demangled_name`, `t21`.`grid`, `t21`.`block`, `t21`.`collective`, `t21`.`group_name`, `t21`.`sequence`, `t21`.`type_name`, `t21`.`num_in_elements`, `t21`.`ordinal`
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                          ) AS `first_end_ns`
                                        FROM (
                                          SELECT
                                            *
                                          FROM `t18` AS `t19`
                                          WHERE
                                            `t19`.`as_many` AND `t19`.`ranks` > 1
                                        ) AS `t21`
                                      ) AS `t24`
                                      WHERE
                                        `t24`.`first_rank` = `t24`.`compared_with`
                                    ) AS `t25`
                                  ) AS `t26`
                                ) AS `t27`
                              ) AS `t28`
                            ) AS `t29`
                          ) AS `t30`
                        ) AS `t31`
                      ) AS `t32`
                    ) AS `t33`
                  ) AS `t34`
                ) AS `t35`
              ) AS `t36`
            ) AS `t37`
          ) AS `t38`
        ) AS `t39`
      ) AS `t40`
      GROUP BY
        1,
        2,
        3,
        4,
        5,
        6
    ) AS `t41`
  ) AS `t43`
    ON `t23`.`run` = `t43`.`of_run` AND `t23`.`rank` = `t43`.`of_rank`
)
SELECT
  `t48`.`run`,
  `t48`.`rank`,
  `t48`.`collectives`,
  IF(`t48`.`is_known` AND `t49`.`other_is_known`, `t49`.`other_compared_with`, NULL) AS `reference`,
  IF(
    `t48`.`is_known` AND `t49`.`other_is_known`,
    `t48`.`offset_ns` + `t49`.`other_offset_ns`,
    NULL
  ) AS `clock_offset_ns`,
  IF(
    `t48`.`is_known` AND `t49`.`other_is_known`,
    `t48`.`error_ns` + `t49`.`other_error_ns`,
    NULL
  ) AS `clock_error_ns`,
  IF(
    `t48`.`is_reference`,
    'reference',
    IF(`t48`.`is_known` AND `t49`.`other_is_known`, 'estimated', 'none')
  ) AS `clock`
FROM (
  SELECT
    `t45`.`run`,
    `t45`.`rank`,
    COALESCE(`t45`.`collectives`, 0) AS `collectives`,
    COALESCE(`t45`.`compared_with`, `t45`.`rank`) AS `compared_with`,
    IF(
      (
        `t45`.`rank` = `t45`.`lowest`
      )
      OR COALESCE(
        (
          `t45`.`collectives` > 0
        )
        AND (
          COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
        ),
        FALSE
      ),
      0,
      `t45`.`median_ns`
    ) AS `offset_ns`,
    IF(
      (
        `t45`.`rank` = `t45`.`lowest`
      )
      OR COALESCE(
        (
          `t45`.`collectives` > 0
        )
        AND (
          COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
        ),
        FALSE
      ),
      0,
      COALESCE(`t45`.`dense_error_ns`, `t45`.`error_ns`)
    ) AS `error_ns`,
    (
      `t45`.`rank` = `t45`.`lowest`
    )
    OR COALESCE(
      (
        `t45`.`collectives` > 0
      )
      AND (
        COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
      ),
      FALSE
    ) AS `is_reference`,
    (
      `t45`.`rank` = `t45`.`lowest`
    )
    OR COALESCE(
      (
        `t45`.`collectives` > 0
      )
      AND (
        COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
      ),
      FALSE
    )
    OR COALESCE(
      (
        `t45`.`dense_error_ns` IS NOT NULL
      )
      OR (
        (
          `t45`.`has_all_pairs` > 0
        )
        AND (
          ABS(`t45`.`median_ns`) > `t45`.`most_ns`
        )
        AND (
          (
            `t45`.`out_of_order` * 2
          ) <= `t45`.`collectives`
        )
      ),
      FALSE
    ) AS `is_known`
  FROM `t44` AS `t45`
) AS `t48`
INNER JOIN (
  SELECT
    `t45`.`run` AS `other_run`,
    `t45`.`rank` AS `other_rank`,
    COALESCE(`t45`.`collectives`, 0) AS `other_collectives`,
    COALESCE(`t45`.`compared_with`, `t45`.`rank`) AS `other_compared_with`,
    IF(
      (
        `t45`.`rank` = `t45`.`lowest`
      )
      OR COALESCE(
        (
          `t45`.`collectives` > 0
        )
        AND (
          COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
        ),
        FALSE
      ),
      0,
      `t45`.`median_ns`
    ) AS `other_offset_ns`,
    IF(
      (
        `t45`.`rank` = `t45`.`lowest`
      )
      OR COALESCE(
        (
          `t45`.`collectives` > 0
        )
        AND (
          COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
        ),
        FALSE
      ),
      0,
      COALESCE(`t45`.`dense_error_ns`, `t45`.`error_ns`)
    ) AS `other_error_ns`,
    (
      `t45`.`rank` = `t45`.`lowest`
    )
    OR COALESCE(
      (
        `t45`.`collectives` > 0
      )
      AND (
        COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
      ),
      FALSE
    ) AS `other_is_reference`,
    (
      `t45`.`rank` = `t45`.`lowest`
    )
    OR COALESCE(
      (
        `t45`.`collectives` > 0
      )
      AND (
        COALESCE(`t45`.`compared_with`, `t45`.`rank`) = `t45`.`rank`
      ),
      FALSE
    )
    OR COALESCE(
      (
        `t45`.`dense_error_ns` IS NOT NULL
      )
      OR (
        (
          `t45`.`has_all_pairs` > 0
        )
        AND (
          ABS(`t45`.`median_ns`) > `t45`.`most_ns`
        )
        AND (
          (
            `t45`.`out_of_order` * 2
          ) <= `t45`.`collectives`
        )
      ),
      FALSE
    ) AS `other_is_known`
  FROM `t44` AS `t45`
) AS `t49`
  ON `t48`.`run` = `t49`.`other_run` AND `t48`.`compared_with` = `t49`.`other_rank`
