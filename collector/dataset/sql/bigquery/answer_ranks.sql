WITH `t2` AS (
  SELECT
    `t1`.`run`,
    `t1`.`rank`,
    `t1`.`step`,
    `t1`.`name`,
    `t1`.`start_ns`,
    `t1`.`duration_ns`,
    `t1`.`start_ns` + `t1`.`duration_ns` AS `end_ns`,
    ROW_NUMBER() OVER (
      PARTITION BY `t1`.`run`, `t1`.`rank`, `t1`.`step`, `t1`.`name`
      ORDER BY `t1`.`start_ns` ASC, `t1`.`id` ASC
    ) - 1 AS `ordinal`
  FROM (
    SELECT
      *
    FROM `kernels` AS `t0`
    WHERE
      `t0`.`class` = 'communication'
  ) AS `t1`
)
SELECT
  `t22`.`run`,
  `t22`.`step`,
  `t22`.`name`,
  `t22`.`ordinal`,
  `t22`.`straggler`,
  `t22`.`ranks`,
  `t22`.`cost_ns`,
  `t22`.`transfer_ns`,
  `t22`.`last_ns` - `t22`.`first_ns` AS `skew_ns`
FROM (
  SELECT
    `t21`.`run`,
    `t21`.`step`,
    `t21`.`name`,
    `t21`.`ordinal`,
    `t21`.`straggler`,
    `t21`.`ranks`,
    `t21`.`first_ns`,
    `t21`.`last_ns`,
    `t21`.`transfer_ns`,
    SUM(IF(`t21`.`wait_ns` > `t21`.`errors_ns`, `t21`.`wait_ns`, 0)) AS `cost_ns`
  FROM (
    SELECT
      `t20`.`run`,
      `t20`.`step`,
      `t20`.`name`,
      `t20`.`ordinal`,
      `t20`.`rank`,
      `t20`.`duration_ns`,
      `t20`.`start_ns`,
      `t20`.`error_ns`,
      `t20`.`ranks`,
      `t20`.`first_ns`,
      `t20`.`last_ns`,
      `t20`.`transfer_ns`,
      `t20`.`straggler`,
      `t20`.`last_ns` - `t20`.`start_ns` AS `wait_ns`,
      `t20`.`error_ns` + MAX(IF(`t20`.`rank` = `t20`.`straggler`, `t20`.`error_ns`, NULL)) OVER (
        PARTITION BY `t20`.`run`, `t20`.`step`, `t20`.`name`, `t20`.`ordinal`
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
      ) AS `errors_ns`
    FROM (
      SELECT
        `t19`.`run`,
        `t19`.`step`,
        `t19`.`name`,
        `t19`.`ordinal`,
        `t19`.`rank`,
        `t19`.`duration_ns`,
        `t19`.`start_ns`,
        `t19`.`error_ns`,
        `t19`.`ranks`,
        `t19`.`first_ns`,
        `t19`.`last_ns`,
        `t19`.`transfer_ns`,
        MIN(IF(`t19`.`start_ns` = `t19`.`last_ns`, `t19`.`rank`, NULL)) OVER (
          PARTITION BY `t19`.`run`, `t19`.`step`, `t19`.`name`, `t19`.`ordinal`
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS `straggler`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            `t17`.`run`,
            `t17`.`step`,
            `t17`.`name`,
            `t17`.`ordinal`,
            `t17`.`rank`,
            `t17`.`duration_ns`,
            `t17`.`start_ns`,
            `t17`.`error_ns`,
            COUNT(`t17`.`rank`) OVER (
              PARTITION BY `t17`.`run`, `t17`.`step`, `t17`.`name`, `t17`.`ordinal`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `ranks`,
            MIN(`t17`.`start_ns`) OVER (
              PARTITION BY `t17`.`run`, `t17`.`step`, `t17`.`name`, `t17`.`ordinal`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `first_ns`,
            MAX(`t17`.`start_ns`) OVER (
              PARTITION BY `t17`.`run`, `t17`.`step`, `t17`.`name`, `t17`.`ordinal`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `last_ns`,
            MIN(`t17`.`duration_ns`) OVER (
              PARTITION BY `t17`.`run`, `t17`.`step`, `t17`.`name`, `t17`.`ordinal`
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            ) AS `transfer_ns`
          FROM (
            SELECT
              `t4`.`run`,
              `t4`.`step`,
              `t4`.`name`,
              `t4`.`ordinal`,
              `t4`.`rank`,
              `t4`.`duration_ns`,
              `t4`.`start_ns` - `t16`.`clock_offset_ns` AS `start_ns`,
              `t16`.`clock_error_ns` AS `error_ns`
            FROM `t2` AS `t4`
            INNER JOIN (
              SELECT
                IF(
                  (
                    `t14`.`collectives` >= 3
                  ) AND (
                    ABS(`t14`.`median_ns`) > `t14`.`most_ns`
                  ),
                  `t14`.`median_ns`,
                  0
                ) AS `clock_offset_ns`,
                IF(
                  (
                    `t14`.`collectives` >= 3
                  ) AND (
                    ABS(`t14`.`median_ns`) > `t14`.`most_ns`
                  ),
                  `t14`.`error_ns`,
                  0
                ) AS `clock_error_ns`,
                `t14`.`run` AS `of_run`,
                `t14`.`rank` AS `of_rank`
              FROM (
                SELECT
                  `t13`.`run`,
                  `t13`.`rank`,
                  `t13`.`median_ns`,
                  `t13`.`error_ns`,
                  COUNT(*) AS `collectives`,
                  MAX(`t13`.`away_ns`) AS `most_ns`
                FROM (
                  SELECT
                    `t12`.`run`,
                    `t12`.`rank`,
                    `t12`.`step`,
                    `t12`.`name`,
                    `t12`.`start_ns`,
                    `t12`.`duration_ns`,
                    `t12`.`end_ns`,
                    `t12`.`ordinal`,
                    `t12`.`lowest`,
                    `t12`.`apart_ns`,
                    `t12`.`median_ns`,
                    `t12`.`away_ns`,
                    `t12`.`error_ns`
                  FROM (
                    SELECT
                      `t11`.`run`,
                      `t11`.`rank`,
                      `t11`.`step`,
                      `t11`.`name`,
                      `t11`.`start_ns`,
                      `t11`.`duration_ns`,
                      `t11`.`end_ns`,
                      `t11`.`ordinal`,
                      `t11`.`lowest`,
                      `t11`.`apart_ns`,
                      `t11`.`median_ns`,
                      `t11`.`away_ns`,
                      `t11`.`place`,
                      `t11`.`number`,
                      MAX(
                        IF(
                          (
                            (
                              `t11`.`place` * 2
                            ) = (
                              `t11`.`number` - 1
                            )
                          )
                          OR (
                            (
                              `t11`.`place` * 2
                            ) = (
                              `t11`.`number` - 2
                            )
                          ),
                          `t11`.`away_ns`,
                          NULL
                        )
                      ) OVER (
                        PARTITION BY `t11`.`run`, `t11`.`rank`
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                      ) AS `error_ns`
                    FROM (
                      SELECT
                        `t10`.`run`,
                        `t10`.`rank`,
                        `t10`.`step`,
                        `t10`.`name`,
                        `t10`.`start_ns`,
                        `t10`.`duration_ns`,
                        `t10`.`end_ns`,
                        `t10`.`ordinal`,
                        `t10`.`lowest`,
                        `t10`.`apart_ns`,
                        `t10`.`median_ns`,
                        `t10`.`away_ns`,
                        ROW_NUMBER() OVER (
                          PARTITION BY `t10`.`run`, `t10`.`rank`
                          ORDER BY `t10`.`away_ns` ASC, `t10`.`step` ASC, `t10`.`name` ASC, `t10`.`ordinal` ASC
                        ) - 1 AS `place`,
                        COUNT(*) OVER (
                          PARTITION BY `t10`.`run`, `t10`.`rank`
                          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                        ) AS `number`
                      FROM (
                        SELECT
                          `t9`.`run`,
                          `t9`.`rank`,
                          `t9`.`step`,
                          `t9`.`name`,
                          `t9`.`start_ns`,
                          `t9`.`duration_ns`,
                          `t9`.`end_ns`,
                          `t9`.`ordinal`,
                          `t9`.`lowest`,
                          `t9`.`apart_ns`,
                          `t9`.`median_ns`,
                          ABS(`t9`.`apart_ns` - `t9`.`median_ns`) AS `away_ns`
                        FROM (
                          SELECT
                            `t8`.`run`,
                            `t8`.`rank`,
                            `t8`.`step`,
                            `t8`.`name`,
                            `t8`.`start_ns`,
                            `t8`.`duration_ns`,
                            `t8`.`end_ns`,
                            `t8`.`ordinal`,
                            `t8`.`lowest`,
                            `t8`.`apart_ns`,
                            `t8`.`place`,
                            `t8`.`number`,
                            MAX(
                              IF(
                                (
                                  (
                                    `t8`.`place` * 2
                                  ) = (
                                    `t8`.`number` - 1
                                  )
                                )
                                OR (
                                  (
                                    `t8`.`place` * 2
                                  ) = (
                                    `t8`.`number` - 2
                                  )
                                ),
                                `t8`.`apart_ns`,
                                NULL
                              )
                            ) OVER (
                              PARTITION BY `t8`.`run`, `t8`.`rank`
                              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                            ) AS `median_ns`
                          FROM (
                            SELECT
                              `t7`.`run`,
                              `t7`.`rank`,
                              `t7`.`step`,
                              `t7`.`name`,
                              `t7`.`start_ns`,
                              `t7`.`duration_ns`,
                              `t7`.`end_ns`,
                              `t7`.`ordinal`,
                              `t7`.`lowest`,
                              `t7`.`apart_ns`,
                              ROW_NUMBER() OVER (
                                PARTITION BY `t7`.`run`, `t7`.`rank`
                                ORDER BY `t7`.`apart_ns` ASC, `t7`.`step` ASC, `t7`.`name` ASC, `t7`.`ordinal` ASC
                              ) - 1 AS `place`,
                              COUNT(*) OVER (
                                PARTITION BY `t7`.`run`, `t7`.`rank`
                                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                              ) AS `number`
                            FROM (
                              SELECT
                                *
                              FROM (
                                SELECT
                                  `t5`.`run`,
                                  `t5`.`rank`,
                                  `t5`.`step`,
                                  `t5`.`name`,
                                  `t5`.`start_ns`,
                                  `t5`.`duration_ns`,
                                  `t5`.`end_ns`,
                                  `t5`.`ordinal`,
                                  `t5`.`lowest`,
                                  `t5`.`end_ns` - MAX(IF(`t5`.`rank` = `t5`.`lowest`, `t5`.`end_ns`, NULL)) OVER (
                                    PARTITION BY `t5`.`run`, `t5`.`step`, `t5`.`name`, `t5`.`ordinal`
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
                                  ) AS `apart_ns`
                                FROM (
                                  SELECT
                                    `t3`.`run`,
                                    `t3`.`rank`,
                                    `t3`.`step`,
                                    `t3`.`name`,
                                    `t3`.`start_ns`,
                                    `t3`.`duration_ns`,
                                    `t3`.`end_ns`,
                                    `t3`.`ordinal`,
                                    MIN(`t3`.`rank`) OVER (PARTITION BY `t3`.`run` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS `lowest`
                                  FROM `t2` AS `t3`
                                ) AS `t5`
                              ) AS `t6`
                              WHERE
                                `t6`.`apart_ns` IS NOT NULL
                            ) AS `t7`
                          ) AS `t8`
                        ) AS `t9`
                      ) AS `t10`
                    ) AS `t11`
                  ) AS `t12`
                ) AS `t13`
                GROUP BY
                  1,
                  2,
                  3,
                  4
              ) AS `t14`
            ) AS `t16`
              ON `t4`.`run` = `t16`.`of_run` AND `t4`.`rank` = `t16`.`of_rank`
          ) AS `t17`
        ) AS `t18`
        WHERE
          `t18`.`ranks` > 1
      ) AS `t19`
    ) AS `t20`
  ) AS `t21`
  GROUP BY
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9
) AS `t22`
