WITH `t15` AS (
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
          ORDER BY `t12`.`start_ns` ASC, `t12`.`id` ASC
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
                      REGEXP_CONTAINS(
                        LOWER(`t0`.`demangled_name`),
                        'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all'
                      )
                      OR REGEXP_CONTAINS(LOWER(`t0`.`op`), 'nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all'),
                      FALSE
                    ) AS `is_named`,
                    ARRAY_TO_STRING(
                      [
                        CAST(`t0`.`grid_x` AS STRING),
                        CAST(`t0`.`grid_y` AS STRING),
                        CAST(`t0`.`grid_z` AS STRING)
                      ],
                      ','
                    ) AS `grid`,
                    ARRAY_TO_STRING(
                      [
                        CAST(`t0`.`block_x` AS STRING),
                        CAST(`t0`.`block_y` AS STRING),
                        CAST(`t0`.`block_z` AS STRING)
                      ],
                      ','
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
                      REGEXP_CONTAINS(LOWER(`t5`.`name`), 'all_?reduce|all_?gather|reduce_?scatter|broadcast'),
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
), `t34` AS (
  SELECT
    `t20`.`run`,
    `t20`.`rank`,
    `t33`.`compared_with`,
    `t33`.`median_ns`,
    `t33`.`error_ns`,
    `t33`.`collectives`,
    `t33`.`most_ns`
  FROM (
    SELECT DISTINCT
      `t16`.`run`,
      `t16`.`rank`
    FROM `t15` AS `t16`
  ) AS `t20`
  LEFT OUTER JOIN (
    SELECT
      `t31`.`run` AS `of_run`,
      `t31`.`rank` AS `of_rank`,
      `t31`.`compared_with`,
      `t31`.`median_ns`,
      `t31`.`error_ns`,
      `t31`.`collectives`,
      `t31`.`most_ns`
    FROM (
      SELECT
        `t30`.`run`,
        `t30`.`rank`,
        `t30`.`compared_with`,
        `t30`.`median_ns`,
        `t30`.`error_ns`,
        COUNT(*) AS `collectives`,
        MAX(`t30`.`away_ns`) AS `most_ns`
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
          `t29`.`as_many`,
          `t29`.`first_rank`,
          `t29`.`compared_with`,
          `t29`.`apart_ns`,
          `t29`.`median_ns`,
          `t29`.`away_ns`,
          `t29`.`error_ns`
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
            `t28`.`as_many`,
            `t28`.`first_rank`,
            `t28`.`compared_with`,
            `t28`.`apart_ns`,
            `t28`.`median_ns`,
            `t28`.`away_ns`,
            `t28`.`place`,
            `t28`.`number`,
            MAX(
              IF(
                (
                  (
                    `t28`.`place` * 2
                  ) = (
                    `t28`.`number` - 1
                  )
                )
                OR (
                  (
                    `t28`.`place` * 2
                  ) = (
                    `t28`.`number` - 2
                  )
                ),
                `t28`.`away_ns`,
                NULL
              )
            ) OVER (
              PARTITION BY `t28`.`run`, `t28`.`rank`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `error_ns`
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
              `t27`.`as_many`,
              `t27`.`first_rank`,
              `t27`.`compared_with`,
              `t27`.`apart_ns`,
              `t27`.`median_ns`,
              `t27`.`away_ns`,
              ROW_NUMBER() OVER (
                PARTITION BY `t27`.`run`, `t27`.`rank`
                ORDER BY `t27`.`away_ns` ASC, `t27`.`step` ASC, `t27`.`name` ASC, `t27`.`demangled_name` ASC, `t27`.`grid` ASC, `t27`.`block` ASC, `t27`.`collective` ASC, `t27`.`group_name` ASC, `t27`.`sequence` ASC, `t27`.`type_name` ASC, `t27`.`num_in_elements` ASC, `t27`.`ordinal` ASC
              ) - 1 AS `place`,
              COUNT(*) OVER (
                PARTITION BY `t27`.`run`, `t27`.`rank`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `number`
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
                `t26`.`as_many`,
                `t26`.`first_rank`,
                `t26`.`compared_with`,
                `t26`.`apart_ns`,
                `t26`.`median_ns`,
                ABS(`t26`.`apart_ns` - `t26`.`median_ns`) AS `away_ns`
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
                  `t25`.`as_many`,
                  `t25`.`first_rank`,
                  `t25`.`compared_with`,
                  `t25`.`apart_ns`,
                  `t25`.`place`,
                  `t25`.`number`,
                  MAX(
                    IF(
                      (
                        (
                          `t25`.`place` * 2
                        ) = (
                          `t25`.`number` - 1
                        )
                      )
                      OR (
                        (
                          `t25`.`place` * 2
                        ) = (
                          `t25`.`number` - 2
                        )
                      ),
                      `t25`.`apart_ns`,
                      NULL
                    )
                  ) OVER (
                    PARTITION BY `t25`.`run`, `t25`.`rank`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `median_ns`
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
                    `t24`.`as_many`,
                    `t24`.`first_rank`,
                    `t24`.`compared_with`,
                    `t24`.`apart_ns`,
                    ROW_NUMBER() OVER (
                      PARTITION BY `t24`.`run`, `t24`.`rank`
                      ORDER BY `t24`.`apart_ns` ASC, `t24`.`step` ASC, `t24`.`name` ASC, `t24`.`demangled_name` ASC, `t24`.`grid` ASC, `t24`.`block` ASC, `t24`.`collective` ASC, `t24`.`group_name` ASC, `t24`.`sequence` ASC, `t24`.`type_name` ASC, `t24`.`num_in_elements` ASC, `t24`.`ordinal` ASC
                    ) - 1 AS `place`,
                    COUNT(*) OVER (
                      PARTITION BY `t24`.`run`, `t24`.`rank`
                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                    ) AS `number`
                  FROM (
                    SELECT
                      *
                    FROM (
                      SELECT
                        `t22`.`run`,
                        `t22`.`step`,
                        `t22`.`name`,
                        `t22`.`demangled_name`,
                        `t22`.`grid`,
                        `t22`.`block`,
                        `t22`.`collective`,
                        `t22`.`group_name`,
                        `t22`.`sequence`,
                        `t22`.`type_name`,
                        `t22`.`num_in_elements`,
                        `t22`.`rank`,
                        `t22`.`start_ns`,
                        `t22`.`duration_ns`,
                        `t22`.`end_ns`,
                        `t22`.`ordinal`,
                        `t22`.`as_many`,
                        `t22`.`first_rank`,
                        MIN(`t22`.`first_rank`) OVER (
                          PARTITION BY `t22`.`run`, `t22`.`rank`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) AS `compared_with`,
                        `t22`.`end_ns` - MAX(IF(`t22`.`rank` = `t22`.`first_rank`, `t22`.`end_ns`, NULL)) OVER (
                          PARTITION BY `t22`.`run`, `t22`.`step`, `t22`.`name`, `t22`.`demangled_name`, `t22`.`grid`, `t22`.`block`, `t22`.`collective`, `t22`.`group_name`, `t22`.`sequence`, `t22`.`type_name`, `t22`.`num_in_elements`, `t22`.`ordinal`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) AS `apart_ns`
                      FROM (
                        SELECT
                          `t19`.`run`,
                          `t19`.`step`,
                          `t19`.`name`,
                          `t19`.`demangled_name`,
                          `t19`.`grid`,
                          `t19`.`block`,
                          `t19`.`collective`,
                          `t19`.`group_name`,
                          `t19`.`sequence`,
                          `t19`.`type_name`,
                          `t19`.`num_in_elements`,
                          `t19`.`rank`,
                          `t19`.`start_ns`,
                          `t19`.`duration_ns`,
                          `t19`.`end_ns`,
                          `t19`.`ordinal`,
                          `t19`.`as_many`,
                          MIN(`t19`.`rank`) OVER (
                            PARTITION BY `t19`.`run`, `t19`.`step`, `t19`.`name`, `t19`.`demangled_name`, `t19`.`grid`, `t19`.`block`, `t19`.`collective`, `t19`.`group_name`, `t19`.`sequence`, `t19`.`type_name`, `t19`.`num_in_elements`, `t19`.`ordinal`
                            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                          ) AS `first_rank`
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
                            `t16`.`as_many`
                          FROM `t15` AS `t16`
                          WHERE
                            `t16`.`as_many`
                        ) AS `t19`
                      ) AS `t22`
                    ) AS `t23`
                    WHERE
                      `t23`.`first_rank` = `t23`.`compared_with`
                  ) AS `t24`
                ) AS `t25`
              ) AS `t26`
            ) AS `t27`
          ) AS `t28`
        ) AS `t29`
      ) AS `t30`
      GROUP BY
        1,
        2,
        3,
        4,
        5
    ) AS `t31`
  ) AS `t33`
    ON `t20`.`run` = `t33`.`of_run` AND `t20`.`rank` = `t33`.`of_rank`
)
SELECT
  `t51`.`run`,
  `t51`.`step`,
  `t51`.`name`,
  `t51`.`demangled_name`,
  `t51`.`grid`,
  `t51`.`block`,
  `t51`.`collective`,
  `t51`.`group_name`,
  `t51`.`sequence`,
  `t51`.`type_name`,
  `t51`.`num_in_elements`,
  `t51`.`ordinal`,
  `t51`.`ranks`,
  IF(`t51`.`is_paired`, 'by ordinal', 'unknown') AS `pairing`,
  IF(`t51`.`is_paired`, `t51`.`straggler`, NULL) AS `straggler`,
  IF(`t51`.`is_paired`, `t51`.`cost_ns`, NULL) AS `cost_ns`,
  IF(`t51`.`is_paired`, `t51`.`transfer_ns`, NULL) AS `transfer_ns`,
  IF(`t51`.`is_paired`, `t51`.`last_ns` - `t51`.`first_ns`, NULL) AS `skew_ns`
FROM (
  SELECT
    `t50`.`run`,
    `t50`.`step`,
    `t50`.`name`,
    `t50`.`demangled_name`,
    `t50`.`grid`,
    `t50`.`block`,
    `t50`.`collective`,
    `t50`.`group_name`,
    `t50`.`sequence`,
    `t50`.`type_name`,
    `t50`.`num_in_elements`,
    `t50`.`ordinal`,
    `t50`.`straggler`,
    `t50`.`ranks`,
    `t50`.`first_ns`,
    `t50`.`last_ns`,
    `t50`.`transfer_ns`,
    `t50`.`is_paired`,
    SUM(IF(`t50`.`wait_ns` > `t50`.`errors_ns`, `t50`.`wait_ns`, 0)) AS `cost_ns`
  FROM (
    SELECT
      `t49`.`run`,
      `t49`.`step`,
      `t49`.`name`,
      `t49`.`demangled_name`,
      `t49`.`grid`,
      `t49`.`block`,
      `t49`.`collective`,
      `t49`.`group_name`,
      `t49`.`sequence`,
      `t49`.`type_name`,
      `t49`.`num_in_elements`,
      `t49`.`ordinal`,
      `t49`.`rank`,
      `t49`.`duration_ns`,
      `t49`.`as_many`,
      `t49`.`reference`,
      `t49`.`start_ns`,
      `t49`.`end_ns`,
      `t49`.`error_ns`,
      `t49`.`ranks`,
      `t49`.`first_ns`,
      `t49`.`last_ns`,
      `t49`.`first_end_ns`,
      `t49`.`last_end_ns`,
      `t49`.`transfer_ns`,
      `t49`.`is_comparable`,
      `t49`.`spread_ns`,
      `t49`.`together_ns`,
      `t49`.`room_ns`,
      `t49`.`is_paired`,
      `t49`.`straggler`,
      `t49`.`last_ns` - `t49`.`start_ns` AS `wait_ns`,
      `t49`.`error_ns` + MAX(IF(`t49`.`rank` = `t49`.`straggler`, `t49`.`error_ns`, NULL)) OVER (
        PARTITION BY `t49`.`run`, `t49`.`step`, `t49`.`name`, `t49`.`demangled_name`, `t49`.`grid`, `t49`.`block`, `t49`.`collective`, `t49`.`group_name`, `t49`.`sequence`, `t49`.`type_name`, `t49`.`num_in_elements`, `t49`.`ordinal`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `errors_ns`
    FROM (
      SELECT
        `t48`.`run`,
        `t48`.`step`,
        `t48`.`name`,
        `t48`.`demangled_name`,
        `t48`.`grid`,
        `t48`.`block`,
        `t48`.`collective`,
        `t48`.`group_name`,
        `t48`.`sequence`,
        `t48`.`type_name`,
        `t48`.`num_in_elements`,
        `t48`.`ordinal`,
        `t48`.`rank`,
        `t48`.`duration_ns`,
        `t48`.`as_many`,
        `t48`.`reference`,
        `t48`.`start_ns`,
        `t48`.`end_ns`,
        `t48`.`error_ns`,
        `t48`.`ranks`,
        `t48`.`first_ns`,
        `t48`.`last_ns`,
        `t48`.`first_end_ns`,
        `t48`.`last_end_ns`,
        `t48`.`transfer_ns`,
        `t48`.`is_comparable`,
        `t48`.`spread_ns`,
        `t48`.`together_ns`,
        `t48`.`room_ns`,
        `t48`.`is_paired`,
        MIN(IF(`t48`.`start_ns` = `t48`.`last_ns`, `t48`.`rank`, NULL)) OVER (
          PARTITION BY `t48`.`run`, `t48`.`step`, `t48`.`name`, `t48`.`demangled_name`, `t48`.`grid`, `t48`.`block`, `t48`.`collective`, `t48`.`group_name`, `t48`.`sequence`, `t48`.`type_name`, `t48`.`num_in_elements`, `t48`.`ordinal`
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS `straggler`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `t46`.`run`,
            `t46`.`step`,
            `t46`.`name`,
            `t46`.`demangled_name`,
            `t46`.`grid`,
            `t46`.`block`,
            `t46`.`collective`,
            `t46`.`group_name`,
            `t46`.`sequence`,
            `t46`.`type_name`,
            `t46`.`num_in_elements`,
            `t46`.`ordinal`,
            `t46`.`rank`,
            `t46`.`duration_ns`,
            `t46`.`as_many`,
            `t46`.`reference`,
            `t46`.`start_ns`,
            `t46`.`end_ns`,
            `t46`.`error_ns`,
            `t46`.`ranks`,
            `t46`.`first_ns`,
            `t46`.`last_ns`,
            `t46`.`first_end_ns`,
            `t46`.`last_end_ns`,
            `t46`.`transfer_ns`,
            `t46`.`is_comparable`,
            `t46`.`spread_ns`,
            `t46`.`together_ns`,
            `t46`.`room_ns`,
            `t46`.`as_many`
            AND `t46`.`is_comparable`
            AND (
              MIN(`t46`.`together_ns`) OVER (
                PARTITION BY `t46`.`run`, `t46`.`step`, `t46`.`name`, `t46`.`demangled_name`, `t46`.`grid`, `t46`.`block`, `t46`.`collective`, `t46`.`group_name`, `t46`.`sequence`, `t46`.`type_name`, `t46`.`num_in_elements`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) >= 0
            )
            AND (
              COALESCE(
                MIN(`t46`.`room_ns`) OVER (
                  PARTITION BY `t46`.`run`, `t46`.`step`, `t46`.`name`, `t46`.`demangled_name`, `t46`.`grid`, `t46`.`block`, `t46`.`collective`, `t46`.`group_name`, `t46`.`sequence`, `t46`.`type_name`, `t46`.`num_in_elements`
                  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                ),
                1
              ) > 0
            ) AS `is_paired`
          FROM (
            SELECT
              `t45`.`run`,
              `t45`.`step`,
              `t45`.`name`,
              `t45`.`demangled_name`,
              `t45`.`grid`,
              `t45`.`block`,
              `t45`.`collective`,
              `t45`.`group_name`,
              `t45`.`sequence`,
              `t45`.`type_name`,
              `t45`.`num_in_elements`,
              `t45`.`ordinal`,
              `t45`.`rank`,
              `t45`.`duration_ns`,
              `t45`.`as_many`,
              `t45`.`reference`,
              `t45`.`start_ns`,
              `t45`.`end_ns`,
              `t45`.`error_ns`,
              `t45`.`ranks`,
              `t45`.`first_ns`,
              `t45`.`last_ns`,
              `t45`.`first_end_ns`,
              `t45`.`last_end_ns`,
              `t45`.`transfer_ns`,
              `t45`.`is_comparable`,
              `t45`.`spread_ns`,
              `t45`.`first_end_ns` - `t45`.`last_ns` AS `together_ns`,
              (
                LEAD(`t45`.`first_end_ns`) OVER (
                  PARTITION BY `t45`.`run`, `t45`.`step`, `t45`.`name`, `t45`.`demangled_name`, `t45`.`grid`, `t45`.`block`, `t45`.`collective`, `t45`.`group_name`, `t45`.`sequence`, `t45`.`type_name`, `t45`.`num_in_elements`, `t45`.`rank`
                  ORDER BY `t45`.`ordinal` ASC
                ) - `t45`.`last_end_ns`
              ) - GREATEST(
                `t45`.`spread_ns`,
                LEAD(`t45`.`spread_ns`) OVER (
                  PARTITION BY `t45`.`run`, `t45`.`step`, `t45`.`name`, `t45`.`demangled_name`, `t45`.`grid`, `t45`.`block`, `t45`.`collective`, `t45`.`group_name`, `t45`.`sequence`, `t45`.`type_name`, `t45`.`num_in_elements`, `t45`.`rank`
                  ORDER BY `t45`.`ordinal` ASC
                )
              ) AS `room_ns`
            FROM (
              SELECT
                `t44`.`run`,
                `t44`.`step`,
                `t44`.`name`,
                `t44`.`demangled_name`,
                `t44`.`grid`,
                `t44`.`block`,
                `t44`.`collective`,
                `t44`.`group_name`,
                `t44`.`sequence`,
                `t44`.`type_name`,
                `t44`.`num_in_elements`,
                `t44`.`ordinal`,
                `t44`.`rank`,
                `t44`.`duration_ns`,
                `t44`.`as_many`,
                `t44`.`reference`,
                `t44`.`start_ns`,
                `t44`.`end_ns`,
                `t44`.`error_ns`,
                `t44`.`ranks`,
                `t44`.`first_ns`,
                `t44`.`last_ns`,
                `t44`.`first_end_ns`,
                `t44`.`last_end_ns`,
                `t44`.`transfer_ns`,
                `t44`.`is_comparable`,
                `t44`.`last_end_ns` - `t44`.`first_end_ns` AS `spread_ns`
              FROM (
                SELECT
                  `t43`.`run`,
                  `t43`.`step`,
                  `t43`.`name`,
                  `t43`.`demangled_name`,
                  `t43`.`grid`,
                  `t43`.`block`,
                  `t43`.`collective`,
                  `t43`.`group_name`,
                  `t43`.`sequence`,
                  `t43`.`type_name`,
                  `t43`.`num_in_elements`,
                  `t43`.`ordinal`,
                  `t43`.`rank`,
                  `t43`.`duration_ns`,
                  `t43`.`as_many`,
                  `t43`.`reference`,
                  `t43`.`start_ns`,
                  `t43`.`end_ns`,
                  `t43`.`error_ns`,
                  COUNT(`t43`.`rank`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `ranks`,
                  MIN(`t43`.`start_ns`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `first_ns`,
                  MAX(`t43`.`start_ns`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `last_ns`,
                  MIN(`t43`.`end_ns`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `first_end_ns`,
                  MAX(`t43`.`end_ns`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `last_end_ns`,
                  MIN(`t43`.`duration_ns`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `transfer_ns`,
                  MIN(`t43`.`reference`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) = MAX(`t43`.`reference`) OVER (
                    PARTITION BY `t43`.`run`, `t43`.`step`, `t43`.`name`, `t43`.`demangled_name`, `t43`.`grid`, `t43`.`block`, `t43`.`collective`, `t43`.`group_name`, `t43`.`sequence`, `t43`.`type_name`, `t43`.`num_in_elements`, `t43`.`ordinal`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `is_comparable`
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
                    `t21`.`ordinal`,
                    `t21`.`rank`,
                    `t21`.`duration_ns`,
                    `t21`.`as_many`,
                    `t42`.`reference`,
                    `t21`.`start_ns` - `t42`.`clock_offset_ns` AS `start_ns`,
                    `t21`.`end_ns` - `t42`.`clock_offset_ns` AS `end_ns`,
                    `t42`.`clock_error_ns` AS `error_ns`
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
                      `t16`.`as_many`
                    FROM `t15` AS `t16`
                  ) AS `t21`
                  INNER JOIN (
                    SELECT
                      `t40`.`reference`,
                      `t40`.`clock_offset_ns`,
                      `t40`.`clock_error_ns`,
                      `t40`.`run` AS `of_run`,
                      `t40`.`rank` AS `of_rank`
                    FROM (
                      SELECT
                        `t38`.`run`,
                        `t38`.`rank`,
                        `t38`.`collectives`,
                        `t39`.`other_compared_with` AS `reference`,
                        `t38`.`offset_ns` + `t39`.`other_offset_ns` AS `clock_offset_ns`,
                        `t38`.`error_ns` + `t39`.`other_error_ns` AS `clock_error_ns`,
                        IF(
                          `t38`.`is_known`
                          AND (
                            (
                              `t39`.`other_compared_with` = `t39`.`other_rank`
                            ) OR `t39`.`other_is_known`
                          ),
                          'estimated',
                          'believed'
                        ) AS `clock`
                      FROM (
                        SELECT
                          `t35`.`run`,
                          `t35`.`rank`,
                          COALESCE(`t35`.`collectives`, 0) AS `collectives`,
                          COALESCE(`t35`.`compared_with`, `t35`.`rank`) AS `compared_with`,
                          IF(
                            (
                              `t35`.`collectives` >= 3
                            ) AND (
                              ABS(`t35`.`median_ns`) > `t35`.`most_ns`
                            ),
                            `t35`.`median_ns`,
                            0
                          ) AS `offset_ns`,
                          IF(
                            (
                              `t35`.`collectives` >= 3
                            ) AND (
                              ABS(`t35`.`median_ns`) > `t35`.`most_ns`
                            ),
                            `t35`.`error_ns`,
                            0
                          ) AS `error_ns`,
                          COALESCE(
                            (
                              `t35`.`collectives` >= 3
                            ) AND (
                              ABS(`t35`.`median_ns`) > `t35`.`most_ns`
                            ),
                            FALSE
                          ) AS `is_known`
                        FROM `t34` AS `t35`
                      ) AS `t38`
                      INNER JOIN (
                        SELECT
                          `t35`.`run` AS `other_run`,
                          `t35`.`rank` AS `other_rank`,
                          COALESCE(`t35`.`collectives`, 0) AS `other_collectives`,
                          COALESCE(`t35`.`compared_with`, `t35`.`rank`) AS `other_compared_with`,
                          IF(
                            (
                              `t35`.`collectives` >= 3
                            ) AND (
                              ABS(`t35`.`median_ns`) > `t35`.`most_ns`
                            ),
                            `t35`.`median_ns`,
                            0
                          ) AS `other_offset_ns`,
                          IF(
                            (
                              `t35`.`collectives` >= 3
                            ) AND (
                              ABS(`t35`.`median_ns`) > `t35`.`most_ns`
                            ),
                            `t35`.`error_ns`,
                            0
                          ) AS `other_error_ns`,
                          COALESCE(
                            (
                              `t35`.`collectives` >= 3
                            ) AND (
                              ABS(`t35`.`median_ns`) > `t35`.`most_ns`
                            ),
                            FALSE
                          ) AS `other_is_known`
                        FROM `t34` AS `t35`
                      ) AS `t39`
                        ON `t38`.`run` = `t39`.`other_run` AND `t38`.`compared_with` = `t39`.`other_rank`
                    ) AS `t40`
                  ) AS `t42`
                    ON `t21`.`run` = `t42`.`of_run` AND `t21`.`rank` = `t42`.`of_rank`
                ) AS `t43`
              ) AS `t44`
            ) AS `t45`
          ) AS `t46`
        ) AS `t47`
        WHERE
          `t47`.`ranks` > 1
      ) AS `t48`
    ) AS `t49`
  ) AS `t50`
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
) AS `t51`
