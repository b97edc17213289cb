WITH `t4` AS (
  SELECT
    `t3`.`run`,
    `t3`.`rank`,
    `t3`.`step`,
    `t3`.`name`,
    `t3`.`grid`,
    `t3`.`block`,
    `t3`.`start_ns`,
    `t3`.`duration_ns`,
    `t3`.`end_ns`,
    `t3`.`ordinal`,
    `t3`.`number`,
    MIN(`t3`.`number`) OVER (
      PARTITION BY `t3`.`run`, `t3`.`step`, `t3`.`name`, `t3`.`grid`, `t3`.`block`
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) = MAX(`t3`.`number`) OVER (
      PARTITION BY `t3`.`run`, `t3`.`step`, `t3`.`name`, `t3`.`grid`, `t3`.`block`
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS `as_many`
  FROM (
    SELECT
      `t2`.`run`,
      `t2`.`rank`,
      `t2`.`step`,
      `t2`.`name`,
      `t2`.`grid`,
      `t2`.`block`,
      `t2`.`start_ns`,
      `t2`.`duration_ns`,
      `t2`.`end_ns`,
      `t2`.`ordinal`,
      COUNT(`t2`.`ordinal`) OVER (
        PARTITION BY `t2`.`run`, `t2`.`step`, `t2`.`name`, `t2`.`grid`, `t2`.`block`, `t2`.`rank`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `number`
    FROM (
      SELECT
        `t1`.`run`,
        `t1`.`rank`,
        `t1`.`step`,
        `t1`.`name`,
        `t1`.`grid`,
        `t1`.`block`,
        `t1`.`start_ns`,
        `t1`.`duration_ns`,
        `t1`.`start_ns` + `t1`.`duration_ns` AS `end_ns`,
        ROW_NUMBER() OVER (
          PARTITION BY `t1`.`run`, `t1`.`rank`, `t1`.`step`, `t1`.`name`, `t1`.`grid`, `t1`.`block`
          ORDER BY `t1`.`start_ns` ASC NULLS LAST, `t1`.`id` ASC NULLS LAST
        ) - 1 AS `ordinal`
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
          ) AS `block`
        FROM `kernels` AS `t0`
        WHERE
          `t0`.`class` = 'communication'
      ) AS `t1`
    ) AS `t2`
  ) AS `t3`
)
SELECT
  `t21`.`run`,
  `t21`.`rank`,
  COALESCE(`t21`.`collectives`, 0) AS `collectives`,
  IF(
    (
      `t21`.`collectives` >= 3
    ) AND (
      ABS(`t21`.`median_ns`) > `t21`.`most_ns`
    ),
    `t21`.`median_ns`,
    0
  ) AS `clock_offset_ns`,
  IF(
    (
      `t21`.`collectives` >= 3
    ) AND (
      ABS(`t21`.`median_ns`) > `t21`.`most_ns`
    ),
    `t21`.`error_ns`,
    0
  ) AS `clock_error_ns`,
  IF(
    (
      `t21`.`collectives` >= 3
    ) AND (
      ABS(`t21`.`median_ns`) > `t21`.`most_ns`
    ),
    'estimated',
    'believed'
  ) AS `clock`
FROM (
  SELECT
    `t8`.`run`,
    `t8`.`rank`,
    `t20`.`median_ns`,
    `t20`.`error_ns`,
    `t20`.`collectives`,
    `t20`.`most_ns`
  FROM (
    SELECT DISTINCT
      `t5`.`run`,
      `t5`.`rank`
    FROM `t4` AS `t5`
  ) AS `t8`
  LEFT OUTER JOIN (
    SELECT
      `t18`.`run` AS `of_run`,
      `t18`.`rank` AS `of_rank`,
      `t18`.`median_ns`,
      `t18`.`error_ns`,
      `t18`.`collectives`,
      `t18`.`most_ns`
    FROM (
      SELECT
        `t17`.`run`,
        `t17`.`rank`,
        `t17`.`median_ns`,
        `t17`.`error_ns`,
        COUNT(*) AS `collectives`,
        MAX(`t17`.`away_ns`) AS `most_ns`
      FROM (
        SELECT
          `t16`.`run`,
          `t16`.`rank`,
          `t16`.`step`,
          `t16`.`name`,
          `t16`.`grid`,
          `t16`.`block`,
          `t16`.`start_ns`,
          `t16`.`duration_ns`,
          `t16`.`end_ns`,
          `t16`.`ordinal`,
          `t16`.`as_many`,
          `t16`.`lowest`,
          `t16`.`apart_ns`,
          `t16`.`median_ns`,
          `t16`.`away_ns`,
          `t16`.`error_ns`
        FROM (
          SELECT
            `t15`.`run`,
            `t15`.`rank`,
            `t15`.`step`,
            `t15`.`name`,
            `t15`.`grid`,
            `t15`.`block`,
            `t15`.`start_ns`,
            `t15`.`duration_ns`,
            `t15`.`end_ns`,
            `t15`.`ordinal`,
            `t15`.`as_many`,
            `t15`.`lowest`,
            `t15`.`apart_ns`,
            `t15`.`median_ns`,
            `t15`.`away_ns`,
            `t15`.`place`,
            `t15`.`number`,
            MAX(
              IF(
                (
                  (
                    `t15`.`place` * 2
                  ) = (
                    `t15`.`number` - 1
                  )
                )
                OR (
                  (
                    `t15`.`place` * 2
                  ) = (
                    `t15`.`number` - 2
                  )
                ),
                `t15`.`away_ns`,
                NULL
              )
            ) OVER (
              PARTITION BY `t15`.`run`, `t15`.`rank`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `error_ns`
          FROM (
            SELECT
              `t14`.`run`,
              `t14`.`rank`,
              `t14`.`step`,
              `t14`.`name`,
              `t14`.`grid`,
              `t14`.`block`,
              `t14`.`start_ns`,
              `t14`.`duration_ns`,
              `t14`.`end_ns`,
              `t14`.`ordinal`,
              `t14`.`as_many`,
              `t14`.`lowest`,
              `t14`.`apart_ns`,
              `t14`.`median_ns`,
              `t14`.`away_ns`,
              ROW_NUMBER() OVER (
                PARTITION BY `t14`.`run`, `t14`.`rank`
                ORDER BY `t14`.`away_ns` ASC NULLS LAST, `t14`.`step` ASC NULLS LAST, `t14`.`name` ASC NULLS LAST, `t14`.`grid` ASC NULLS LAST, `t14`.`block` ASC NULLS LAST, `t14`.`ordinal` ASC NULLS LAST
              ) - 1 AS `place`,
              COUNT(*) OVER (
                PARTITION BY `t14`.`run`, `t14`.`rank`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `number`
            FROM (
              SELECT
                `t13`.`run`,
                `t13`.`rank`,
                `t13`.`step`,
                `t13`.`name`,
                `t13`.`grid`,
                `t13`.`block`,
                `t13`.`start_ns`,
                `t13`.`duration_ns`,
                `t13`.`end_ns`,
                `t13`.`ordinal`,
                `t13`.`as_many`,
                `t13`.`lowest`,
                `t13`.`apart_ns`,
                `t13`.`median_ns`,
                ABS(`t13`.`apart_ns` - `t13`.`median_ns`) AS `away_ns`
              FROM (
                SELECT
                  `t12`.`run`,
                  `t12`.`rank`,
                  `t12`.`step`,
                  `t12`.`name`,
                  `t12`.`grid`,
                  `t12`.`block`,
                  `t12`.`start_ns`,
                  `t12`.`duration_ns`,
                  `t12`.`end_ns`,
                  `t12`.`ordinal`,
                  `t12`.`as_many`,
                  `t12`.`lowest`,
                  `t12`.`apart_ns`,
                  `t12`.`place`,
                  `t12`.`number`,
                  MAX(
                    IF(
                      (
                        (
                          `t12`.`place` * 2
                        ) = (
                          `t12`.`number` - 1
                        )
                      )
                      OR (
                        (
                          `t12`.`place` * 2
                        ) = (
                          `t12`.`number` - 2
                        )
                      ),
                      `t12`.`apart_ns`,
                      NULL
                    )
                  ) OVER (
                    PARTITION BY `t12`.`run`, `t12`.`rank`
                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                  ) AS `median_ns`
                FROM (
                  SELECT
                    `t11`.`run`,
                    `t11`.`rank`,
                    `t11`.`step`,
                    `t11`.`name`,
                    `t11`.`grid`,
                    `t11`.`block`,
                    `t11`.`start_ns`,
                    `t11`.`duration_ns`,
                    `t11`.`end_ns`,
                    `t11`.`ordinal`,
                    `t11`.`as_many`,
                    `t11`.`lowest`,
                    `t11`.`apart_ns`,
                    ROW_NUMBER() OVER (
                      PARTITION BY `t11`.`run`, `t11`.`rank`
                      ORDER BY `t11`.`apart_ns` ASC NULLS LAST, `t11`.`step` ASC NULLS LAST, `t11`.`name` ASC NULLS LAST, `t11`.`grid` ASC NULLS LAST, `t11`.`block` ASC NULLS LAST, `t11`.`ordinal` ASC NULLS LAST
                    ) - 1 AS `place`,
                    COUNT(*) OVER (
                      PARTITION BY `t11`.`run`, `t11`.`rank`
                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                    ) AS `number`
                  FROM (
                    SELECT
                      *
                    FROM (
                      SELECT
                        `t9`.`run`,
                        `t9`.`rank`,
                        `t9`.`step`,
                        `t9`.`name`,
                        `t9`.`grid`,
                        `t9`.`block`,
                        `t9`.`start_ns`,
                        `t9`.`duration_ns`,
                        `t9`.`end_ns`,
                        `t9`.`ordinal`,
                        `t9`.`as_many`,
                        `t9`.`lowest`,
                        `t9`.`end_ns` - MAX(IF(`t9`.`rank` = `t9`.`lowest`, `t9`.`end_ns`, NULL)) OVER (
                          PARTITION BY `t9`.`run`, `t9`.`step`, `t9`.`name`, `t9`.`grid`, `t9`.`block`, `t9`.`ordinal`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) AS `apart_ns`
                      FROM (
                        SELECT
                          `t7`.`run`,
                          `t7`.`rank`,
                          `t7`.`step`,
                          `t7`.`name`,
                          `t7`.`grid`,
                          `t7`.`block`,
                          `t7`.`start_ns`,
                          `t7`.`duration_ns`,
                          `t7`.`end_ns`,
                          `t7`.`ordinal`,
                          `t7`.`as_many`,
                          MIN(`t7`.`rank`) OVER (PARTITION BY `t7`.`run` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS `lowest`
                        FROM (
                          SELECT
                            `t5`.`run`,
                            `t5`.`rank`,
                            `t5`.`step`,
                            `t5`.`name`,
                            `t5`.`grid`,
                            `t5`.`block`,
                            `t5`.`start_ns`,
                            `t5`.`duration_ns`,
                            `t5`.`end_ns`,
                            `t5`.`ordinal`,
                            `t5`.`as_many`
                          FROM `t4` AS `t5`
                          WHERE
                            `t5`.`as_many`
                        ) AS `t7`
                      ) AS `t9`
                    ) AS `t10`
                    WHERE
                      `t10`.`apart_ns` IS NOT NULL
                  ) AS `t11`
                ) AS `t12`
              ) AS `t13`
            ) AS `t14`
          ) AS `t15`
        ) AS `t16`
      ) AS `t17`
      GROUP BY
        1,
        2,
        3,
        4
    ) AS `t18`
  ) AS `t20`
    ON `t8`.`run` = `t20`.`of_run` AND `t8`.`rank` = `t20`.`of_rank`
) AS `t21`
