SELECT
  `t15`.`run`,
  `t15`.`rank`,
  `t15`.`step`,
  `t15`.`device_id`,
  SUM(GREATEST(`t15`.`end_ns` - GREATEST(`t15`.`start_ns`, `t15`.`covered_ns`), 0)) AS `busy_ns`,
  COUNT(*) AS `activities`
FROM (
  SELECT
    `t14`.`run`,
    `t14`.`rank`,
    `t14`.`step`,
    `t14`.`device_id`,
    `t14`.`context_id`,
    `t14`.`stream_id`,
    `t14`.`correlation_id`,
    `t14`.`start_ns`,
    `t14`.`duration_ns`,
    `t14`.`class`,
    `t14`.`end_ns`,
    `t14`.`of_run`,
    `t14`.`of_rank`,
    `t14`.`of_step`,
    `t14`.`first_ns`,
    `t14`.`last_ns`,
    COALESCE(
      MAX(`t14`.`end_ns`) OVER (
        PARTITION BY `t14`.`run`, `t14`.`rank`, `t14`.`step`, `t14`.`device_id`
        ORDER BY `t14`.`start_ns` ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 preceding
      ),
      `t14`.`start_ns`
    ) AS `covered_ns`
  FROM (
    SELECT
      `t13`.`run`,
      `t13`.`rank`,
      `t13`.`step`,
      `t13`.`device_id`,
      `t13`.`context_id`,
      `t13`.`stream_id`,
      `t13`.`correlation_id`,
      GREATEST(`t13`.`start_ns`, `t13`.`first_ns`) AS `start_ns`,
      `t13`.`duration_ns`,
      `t13`.`class`,
      LEAST(`t13`.`end_ns`, `t13`.`last_ns`) AS `end_ns`,
      `t13`.`of_run`,
      `t13`.`of_rank`,
      `t13`.`of_step`,
      `t13`.`first_ns`,
      `t13`.`last_ns`
    FROM (
      SELECT
        `t12`.`run`,
        `t12`.`rank`,
        `t12`.`step`,
        `t12`.`device_id`,
        `t12`.`context_id`,
        `t12`.`stream_id`,
        `t12`.`correlation_id`,
        `t12`.`start_ns`,
        `t12`.`duration_ns`,
        `t12`.`class`,
        `t12`.`end_ns`,
        `t8`.`of_run`,
        `t8`.`of_rank`,
        `t8`.`of_step`,
        `t8`.`first_ns`,
        `t8`.`last_ns`
      FROM (
        SELECT
          `t10`.`run`,
          `t10`.`rank`,
          `t10`.`step`,
          `t10`.`device_id`,
          `t10`.`context_id`,
          `t10`.`stream_id`,
          `t10`.`correlation_id`,
          `t10`.`start_ns`,
          `t10`.`duration_ns`,
          `t10`.`class`,
          `t10`.`start_ns` + `t10`.`duration_ns` AS `end_ns`
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t1`.`run`,
              `t1`.`rank`,
              `t1`.`step`,
              `t1`.`device_id`,
              `t1`.`context_id`,
              `t1`.`stream_id`,
              `t1`.`correlation_id`,
              `t1`.`start_ns`,
              `t1`.`duration_ns`,
              'memset' AS `class`
            FROM `memsets` AS `t1`
          ) AS `t5`
          UNION ALL
          SELECT
            *
          FROM (
            SELECT
              *
            FROM (
              SELECT
                `t2`.`run`,
                `t2`.`rank`,
                `t2`.`step`,
                `t2`.`device_id`,
                `t2`.`context_id`,
                `t2`.`stream_id`,
                `t2`.`correlation_id`,
                `t2`.`start_ns`,
                `t2`.`duration_ns`,
                `t2`.`class`
              FROM `kernels` AS `t2`
            ) AS `t6`
            UNION ALL
            SELECT
              *
            FROM (
              SELECT
                `t3`.`run`,
                `t3`.`rank`,
                `t3`.`step`,
                `t3`.`device_id`,
                `t3`.`context_id`,
                `t3`.`stream_id`,
                `t3`.`correlation_id`,
                `t3`.`start_ns`,
                `t3`.`duration_ns`,
                'copy' AS `class`
              FROM `copies` AS `t3`
            ) AS `t7`
          ) AS `t9`
        ) AS `t10`
      ) AS `t12`
      INNER JOIN (
        SELECT
          `t0`.`run` AS `of_run`,
          `t0`.`rank` AS `of_rank`,
          `t0`.`step` AS `of_step`,
          `t0`.`start_ns` AS `first_ns`,
          `t0`.`end_ns` AS `last_ns`
        FROM `steps` AS `t0`
      ) AS `t8`
        ON `t12`.`run` = `t8`.`of_run`
        AND `t12`.`rank` = `t8`.`of_rank`
        AND `t12`.`step` = `t8`.`of_step`
    ) AS `t13`
    WHERE
      LEAST(`t13`.`end_ns`, `t13`.`last_ns`) >= GREATEST(`t13`.`start_ns`, `t13`.`first_ns`)
  ) AS `t14`
) AS `t15`
GROUP BY
  1,
  2,
  3,
  4
