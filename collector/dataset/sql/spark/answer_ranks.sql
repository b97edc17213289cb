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
  `t32`.`run`,
  `t32`.`step`,
  `t32`.`name`,
  `t32`.`grid`,
  `t32`.`block`,
  `t32`.`ordinal`,
  `t32`.`ranks`,
  IF(`t32`.`as_many` AND (
    `t32`.`gap_ns` <= 0
  ), 'by ordinal', 'unknown') AS `pairing`,
  IF(`t32`.`as_many` AND (
    `t32`.`gap_ns` <= 0
  ), `t32`.`straggler`, NULL) AS `straggler`,
  IF(`t32`.`as_many` AND (
    `t32`.`gap_ns` <= 0
  ), `t32`.`cost_ns`, NULL) AS `cost_ns`,
  IF(`t32`.`as_many` AND (
    `t32`.`gap_ns` <= 0
  ), `t32`.`transfer_ns`, NULL) AS `transfer_ns`,
  IF(
    `t32`.`as_many` AND (
      `t32`.`gap_ns` <= 0
    ),
    `t32`.`last_ns` - `t32`.`first_ns`,
    NULL
  ) AS `skew_ns`
FROM (
  SELECT
    `t31`.`run`,
    `t31`.`step`,
    `t31`.`name`,
    `t31`.`grid`,
    `t31`.`block`,
    `t31`.`ordinal`,
    `t31`.`straggler`,
    `t31`.`ranks`,
    `t31`.`first_ns`,
    `t31`.`last_ns`,
    `t31`.`transfer_ns`,
    `t31`.`as_many`,
    `t31`.`gap_ns`,
    SUM(IF(`t31`.`wait_ns` > `t31`.`errors_ns`, `t31`.`wait_ns`, 0)) AS `cost_ns`
  FROM (
    SELECT
      `t30`.`run`,
      `t30`.`step`,
      `t30`.`name`,
      `t30`.`grid`,
      `t30`.`block`,
      `t30`.`ordinal`,
      `t30`.`rank`,
      `t30`.`duration_ns`,
      `t30`.`as_many`,
      `t30`.`start_ns`,
      `t30`.`end_ns`,
      `t30`.`error_ns`,
      `t30`.`ranks`,
      `t30`.`first_ns`,
      `t30`.`last_ns`,
      `t30`.`ends_ns`,
      `t30`.`transfer_ns`,
      `t30`.`gap_ns`,
      `t30`.`straggler`,
      `t30`.`last_ns` - `t30`.`start_ns` AS `wait_ns`,
      `t30`.`error_ns` + MAX(IF(`t30`.`rank` = `t30`.`straggler`, `t30`.`error_ns`, NULL)) OVER (
        PARTITION BY `t30`.`run`, `t30`.`step`, `t30`.`name`, `t30`.`grid`, `t30`.`block`, `t30`.`ordinal`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `errors_ns`
    FROM (
      SELECT
        `t29`.`run`,
        `t29`.`step`,
        `t29`.`name`,
        `t29`.`grid`,
        `t29`.`block`,
        `t29`.`ordinal`,
        `t29`.`rank`,
        `t29`.`duration_ns`,
        `t29`.`as_many`,
        `t29`.`start_ns`,
        `t29`.`end_ns`,
        `t29`.`error_ns`,
        `t29`.`ranks`,
        `t29`.`first_ns`,
        `t29`.`last_ns`,
        `t29`.`ends_ns`,
        `t29`.`transfer_ns`,
        `t29`.`gap_ns`,
        MIN(IF(`t29`.`start_ns` = `t29`.`last_ns`, `t29`.`rank`, NULL)) OVER (
          PARTITION BY `t29`.`run`, `t29`.`step`, `t29`.`name`, `t29`.`grid`, `t29`.`block`, `t29`.`ordinal`
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS `straggler`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `t27`.`run`,
            `t27`.`step`,
            `t27`.`name`,
            `t27`.`grid`,
            `t27`.`block`,
            `t27`.`ordinal`,
            `t27`.`rank`,
            `t27`.`duration_ns`,
            `t27`.`as_many`,
            `t27`.`start_ns`,
            `t27`.`end_ns`,
            `t27`.`error_ns`,
            `t27`.`ranks`,
            `t27`.`first_ns`,
            `t27`.`last_ns`,
            `t27`.`ends_ns`,
            `t27`.`transfer_ns`,
            MAX(`t27`.`last_ns` - `t27`.`ends_ns`) OVER (
              PARTITION BY `t27`.`run`, `t27`.`step`, `t27`.`name`, `t27`.`grid`, `t27`.`block`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `gap_ns`
          FROM (
            SELECT
              `t26`.`run`,
              `t26`.`step`,
              `t26`.`name`,
              `t26`.`grid`,
              `t26`.`block`,
              `t26`.`ordinal`,
              `t26`.`rank`,
              `t26`.`duration_ns`,
              `t26`.`as_many`,
              `t26`.`start_ns`,
              `t26`.`end_ns`,
              `t26`.`error_ns`,
              COUNT(`t26`.`rank`) OVER (
                PARTITION BY `t26`.`run`, `t26`.`step`, `t26`.`name`, `t26`.`grid`, `t26`.`block`, `t26`.`ordinal`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `ranks`,
              MIN(`t26`.`start_ns`) OVER (
                PARTITION BY `t26`.`run`, `t26`.`step`, `t26`.`name`, `t26`.`grid`, `t26`.`block`, `t26`.`ordinal`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `first_ns`,
              MAX(`t26`.`start_ns`) OVER (
                PARTITION BY `t26`.`run`, `t26`.`step`, `t26`.`name`, `t26`.`grid`, `t26`.`block`, `t26`.`ordinal`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `last_ns`,
              MIN(`t26`.`end_ns`) OVER (
                PARTITION BY `t26`.`run`, `t26`.`step`, `t26`.`name`, `t26`.`grid`, `t26`.`block`, `t26`.`ordinal`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `ends_ns`,
              MIN(`t26`.`duration_ns`) OVER (
                PARTITION BY `t26`.`run`, `t26`.`step`, `t26`.`name`, `t26`.`grid`, `t26`.`block`, `t26`.`ordinal`
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
              ) AS `transfer_ns`
            FROM (
              SELECT
                `t10`.`run`,
                `t10`.`step`,
                `t10`.`name`,
                `t10`.`grid`,
                `t10`.`block`,
                `t10`.`ordinal`,
                `t10`.`rank`,
                `t10`.`duration_ns`,
                `t10`.`as_many`,
                `t10`.`start_ns` - `t25`.`clock_offset_ns` AS `start_ns`,
                `t10`.`end_ns` - `t25`.`clock_offset_ns` AS `end_ns`,
                `t25`.`clock_error_ns` AS `error_ns`
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
              ) AS `t10`
              INNER JOIN (
                SELECT
                  IF(
                    (
                      `t23`.`collectives` >= 3
                    ) AND (
                      ABS(`t23`.`median_ns`) > `t23`.`most_ns`
                    ),
                    `t23`.`median_ns`,
                    0
                  ) AS `clock_offset_ns`,
                  IF(
                    (
                      `t23`.`collectives` >= 3
                    ) AND (
                      ABS(`t23`.`median_ns`) > `t23`.`most_ns`
                    ),
                    `t23`.`error_ns`,
                    0
                  ) AS `clock_error_ns`,
                  `t23`.`run` AS `of_run`,
                  `t23`.`rank` AS `of_rank`
                FROM (
                  SELECT
                    `t9`.`run`,
                    `t9`.`rank`,
                    `t22`.`median_ns`,
                    `t22`.`error_ns`,
                    `t22`.`collectives`,
                    `t22`.`most_ns`
                  FROM (
                    SELECT DISTINCT
                      `t5`.`run`,
                      `t5`.`rank`
                    FROM `t4` AS `t5`
                  ) AS `t9`
                  LEFT OUTER JOIN (
                    SELECT
                      `t20`.`run` AS `of_run`,
                      `t20`.`rank` AS `of_rank`,
                      `t20`.`median_ns`,
                      `t20`.`error_ns`,
                      `t20`.`collectives`,
                      `t20`.`most_ns`
                    FROM (
                      SELECT
                        `t19`.`run`,
                        `t19`.`rank`,
                        `t19`.`median_ns`,
                        `t19`.`error_ns`,
                        COUNT(*) AS `collectives`,
                        MAX(`t19`.`away_ns`) AS `most_ns`
                      FROM (
                        SELECT
                          `t18`.`run`,
                          `t18`.`rank`,
                          `t18`.`step`,
                          `t18`.`name`,
                          `t18`.`grid`,
                          `t18`.`block`,
                          `t18`.`start_ns`,
                          `t18`.`duration_ns`,
                          `t18`.`end_ns`,
                          `t18`.`ordinal`,
                          `t18`.`as_many`,
                          `t18`.`lowest`,
                          `t18`.`apart_ns`,
                          `t18`.`median_ns`,
                          `t18`.`away_ns`,
                          `t18`.`error_ns`
                        FROM (
                          SELECT
                            `t17`.`run`,
                            `t17`.`rank`,
                            `t17`.`step`,
                            `t17`.`name`,
                            `t17`.`grid`,
                            `t17`.`block`,
                            `t17`.`start_ns`,
                            `t17`.`duration_ns`,
                            `t17`.`end_ns`,
                            `t17`.`ordinal`,
                            `t17`.`as_many`,
                            `t17`.`lowest`,
                            `t17`.`apart_ns`,
                            `t17`.`median_ns`,
                            `t17`.`away_ns`,
                            `t17`.`place`,
                            `t17`.`number`,
                            MAX(
                              IF(
                                (
                                  (
                                    `t17`.`place` * 2
                                  ) = (
                                    `t17`.`number` - 1
                                  )
                                )
                                OR (
                                  (
                                    `t17`.`place` * 2
                                  ) = (
                                    `t17`.`number` - 2
                                  )
                                ),
                                `t17`.`away_ns`,
                                NULL
                              )
                            ) OVER (
                              PARTITION BY `t17`.`run`, `t17`.`rank`
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ) AS `error_ns`
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
                              ROW_NUMBER() OVER (
                                PARTITION BY `t16`.`run`, `t16`.`rank`
                                ORDER BY `t16`.`away_ns` ASC NULLS LAST, `t16`.`step` ASC NULLS LAST, `t16`.`name` ASC NULLS LAST, `t16`.`grid` ASC NULLS LAST, `t16`.`block` ASC NULLS LAST, `t16`.`ordinal` ASC NULLS LAST
                              ) - 1 AS `place`,
                              COUNT(*) OVER (
                                PARTITION BY `t16`.`run`, `t16`.`rank`
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ) AS `number`
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
                                ABS(`t15`.`apart_ns` - `t15`.`median_ns`) AS `away_ns`
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
                                  `t14`.`place`,
                                  `t14`.`number`,
                                  MAX(
                                    IF(
                                      (
                                        (
                                          `t14`.`place` * 2
                                        ) = (
                                          `t14`.`number` - 1
                                        )
                                      )
                                      OR (
                                        (
                                          `t14`.`place` * 2
                                        ) = (
                                          `t14`.`number` - 2
                                        )
                                      ),
                                      `t14`.`apart_ns`,
                                      NULL
                                    )
                                  ) OVER (
                                    PARTITION BY `t14`.`run`, `t14`.`rank`
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ) AS `median_ns`
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
                                    ROW_NUMBER() OVER (
                                      PARTITION BY `t13`.`run`, `t13`.`rank`
                                      ORDER BY `t13`.`apart_ns` ASC NULLS LAST, `t13`.`step` ASC NULLS LAST, `t13`.`name` ASC NULLS LAST, `t13`.`grid` ASC NULLS LAST, `t13`.`block` ASC NULLS LAST, `t13`.`ordinal` ASC NULLS LAST
                                    ) - 1 AS `place`,
                                    COUNT(*) OVER (
                                      PARTITION BY `t13`.`run`, `t13`.`rank`
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                    ) AS `number`
                                  FROM (
                                    SELECT
                                      *
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
                                        `t11`.`end_ns` - MAX(IF(`t11`.`rank` = `t11`.`lowest`, `t11`.`end_ns`, NULL)) OVER (
                                          PARTITION BY `t11`.`run`, `t11`.`step`, `t11`.`name`, `t11`.`grid`, `t11`.`block`, `t11`.`ordinal`
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                        ) AS `apart_ns`
                                      FROM (
                                        SELECT
                                          `t8`.`run`,
                                          `t8`.`rank`,
                                          `t8`.`step`,
                                          `t8`.`name`,
                                          `t8`.`grid`,
                                          `t8`.`block`,
                                          `t8`.`start_ns`,
                                          `t8`.`duration_ns`,
                                          `t8`.`end_ns`,
                                          `t8`.`ordinal`,
                                          `t8`.`as_many`,
                                          MIN(`t8`.`rank`) OVER (PARTITION BY `t8`.`run` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS `lowest`
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
                                        ) AS `t8`
                                      ) AS `t11`
                                    ) AS `t12`
                                    WHERE
                                      `t12`.`apart_ns` IS NOT NULL
                                  ) AS `t13`
                                ) AS `t14`
                              ) AS `t15`
                            ) AS `t16`
                          ) AS `t17`
                        ) AS `t18`
                      ) AS `t19`
                      GROUP BY
                        1,
                        2,
                        3,
                        4
                    ) AS `t20`
                  ) AS `t22`
                    ON `t9`.`run` = `t22`.`of_run` AND `t9`.`rank` = `t22`.`of_rank`
                ) AS `t23`
              ) AS `t25`
                ON `t10`.`run` = `t25`.`of_run` AND `t10`.`rank` = `t25`.`of_rank`
            ) AS `t26`
          ) AS `t27`
        ) AS `t28`
        WHERE
          `t28`.`ranks` > 1
      ) AS `t29`
    ) AS `t30`
  ) AS `t31`
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
    13
) AS `t32`
