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
), `t11` AS (
  SELECT
    `t4`.`run`,
    `t4`.`rank`,
    `t4`.`step`,
    `t4`.`name`,
    `t4`.`start_ns`,
    `t4`.`duration_ns`,
    `t4`.`end_ns`,
    `t4`.`ordinal`,
    `t7`.`lowest`,
    `t10`.`reference_end_ns`,
    `t10`.`of_run`,
    `t10`.`of_step`,
    `t10`.`of_name`,
    `t10`.`of_ordinal`
  FROM `t2` AS `t4`
  INNER JOIN (
    SELECT
      `t5`.`run` AS `of_run`,
      `t5`.`lowest`
    FROM (
      SELECT
        `t3`.`run`,
        MIN(`t3`.`rank`) AS `lowest`
      FROM `t2` AS `t3`
      GROUP BY
        1
    ) AS `t5`
  ) AS `t7`
    ON `t4`.`run` = `t7`.`of_run`
  INNER JOIN (
    SELECT
      `t8`.`end_ns` AS `reference_end_ns`,
      `t8`.`run` AS `of_run`,
      `t8`.`step` AS `of_step`,
      `t8`.`name` AS `of_name`,
      `t8`.`ordinal` AS `of_ordinal`
    FROM (
      SELECT
        `t4`.`run`,
        `t4`.`rank`,
        `t4`.`step`,
        `t4`.`name`,
        `t4`.`start_ns`,
        `t4`.`duration_ns`,
        `t4`.`end_ns`,
        `t4`.`ordinal`,
        `t7`.`lowest`
      FROM `t2` AS `t4`
      INNER JOIN (
        SELECT
          `t5`.`run` AS `of_run`,
          `t5`.`lowest`
        FROM (
          SELECT
            `t3`.`run`,
            MIN(`t3`.`rank`) AS `lowest`
          FROM `t2` AS `t3`
          GROUP BY
            1
        ) AS `t5`
      ) AS `t7`
        ON `t4`.`run` = `t7`.`of_run`
    ) AS `t8`
    WHERE
      `t8`.`rank` = `t8`.`lowest`
  ) AS `t10`
    ON `t4`.`run` = `t10`.`of_run`
    AND `t4`.`step` = `t10`.`of_step`
    AND `t4`.`name` = `t10`.`of_name`
    AND `t4`.`ordinal` = `t10`.`of_ordinal`
), `t19` AS (
  SELECT
    `t14`.`run`,
    `t14`.`rank`,
    `t18`.`median_ns`,
    ABS(`t14`.`apart_ns` - `t18`.`median_ns`) AS `away_ns`,
    `t14`.`ordinal` AS `id`
  FROM (
    SELECT
      `t12`.`run`,
      `t12`.`rank`,
      `t12`.`end_ns` - `t12`.`reference_end_ns` AS `apart_ns`,
      `t12`.`ordinal`
    FROM `t11` AS `t12`
  ) AS `t14`
  INNER JOIN (
    SELECT
      `t16`.`median_ns`,
      `t16`.`run` AS `of_run`,
      `t16`.`rank` AS `of_rank`
    FROM (
      SELECT
        `t15`.`run`,
        `t15`.`rank`,
        `t15`.`apart_ns` AS `median_ns`,
        ROW_NUMBER() OVER (
          PARTITION BY `t15`.`run`, `t15`.`rank`
          ORDER BY `t15`.`apart_ns` ASC, `t15`.`id` ASC
        ) - 1 AS `place`,
        COUNT(*) OVER (
          PARTITION BY `t15`.`run`, `t15`.`rank`
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS `number`
      FROM (
        SELECT
          `t12`.`run`,
          `t12`.`rank`,
          `t12`.`end_ns` - `t12`.`reference_end_ns` AS `apart_ns`,
          (
            `t12`.`step` * 0
          ) + `t12`.`ordinal` AS `id`
        FROM `t11` AS `t12`
      ) AS `t15`
    ) AS `t16`
    WHERE
      (
        (
          `t16`.`place` * 2
        ) = (
          `t16`.`number` - 1
        )
      )
      OR (
        (
          `t16`.`place` * 2
        ) = (
          `t16`.`number` - 2
        )
      )
  ) AS `t18`
    ON `t14`.`run` = `t18`.`of_run` AND `t14`.`rank` = `t18`.`of_rank`
)
SELECT
  `t26`.`run`,
  `t26`.`rank`,
  `t26`.`collectives`,
  IF(
    (
      `t26`.`collectives` >= 3
    ) AND (
      ABS(`t26`.`median_ns`) > `t26`.`most_ns`
    ),
    `t26`.`median_ns`,
    0
  ) AS `clock_offset_ns`,
  IF(
    (
      `t26`.`collectives` >= 3
    ) AND (
      ABS(`t26`.`median_ns`) > `t26`.`most_ns`
    ),
    `t26`.`error_ns`,
    0
  ) AS `clock_error_ns`,
  IF(
    (
      `t26`.`collectives` >= 3
    ) AND (
      ABS(`t26`.`median_ns`) > `t26`.`most_ns`
    ),
    'estimated',
    'believed'
  ) AS `clock`
FROM (
  SELECT
    `t22`.`run`,
    `t22`.`rank`,
    `t22`.`median_ns`,
    `t22`.`collectives`,
    `t22`.`most_ns`,
    `t25`.`error_ns`
  FROM (
    SELECT
      `t20`.`run`,
      `t20`.`rank`,
      `t20`.`median_ns`,
      COUNT(*) AS `collectives`,
      MAX(`t20`.`away_ns`) AS `most_ns`
    FROM `t19` AS `t20`
    GROUP BY
      1,
      2,
      3
  ) AS `t22`
  INNER JOIN (
    SELECT
      `t23`.`median_ns` AS `error_ns`,
      `t23`.`run` AS `of_run`,
      `t23`.`rank` AS `of_rank`
    FROM (
      SELECT
        `t20`.`run`,
        `t20`.`rank`,
        `t20`.`away_ns` AS `median_ns`,
        ROW_NUMBER() OVER (
          PARTITION BY `t20`.`run`, `t20`.`rank`
          ORDER BY `t20`.`away_ns` ASC, `t20`.`id` ASC
        ) - 1 AS `place`,
        COUNT(*) OVER (
          PARTITION BY `t20`.`run`, `t20`.`rank`
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS `number`
      FROM `t19` AS `t20`
    ) AS `t23`
    WHERE
      (
        (
          `t23`.`place` * 2
        ) = (
          `t23`.`number` - 1
        )
      )
      OR (
        (
          `t23`.`place` * 2
        ) = (
          `t23`.`number` - 2
        )
      )
  ) AS `t25`
    ON `t22`.`run` = `t25`.`of_run` AND `t22`.`rank` = `t25`.`of_rank`
) AS `t26`
