SELECT
  `t14`.`run`,
  `t14`.`rank`,
  `t14`.`step`,
  `t14`.`start_ns` AS `start`,
  `t14`.`start_ns` + `t14`.`duration_ns` AS `end`,
  `t14`.`path` AS `text`,
  `t14`.`textId`,
  `t14`.`thread_id` AS `globalTid`
FROM (
  SELECT
    `t3`.`run`,
    `t3`.`rank`,
    `t3`.`step`,
    `t3`.`id`,
    `t3`.`start_ns`,
    `t3`.`duration_ns`,
    `t3`.`external_id`,
    `t3`.`name`,
    `t3`.`thread_id`,
    `t3`.`depth`,
    `t3`.`domain_name`,
    `t3`.`category_name`,
    `t3`.`color`,
    `t3`.`payload`,
    `t3`.`op_sequence`,
    `t3`.`shapes`,
    `t3`.`parent_id`,
    `t3`.`path`,
    `t3`.`details`,
    `t3`.`is_in_step`,
    `t13`.`textId`
  FROM `annotations` AS `t3`
  INNER JOIN (
    SELECT
      `t11`.`id` AS `textId`,
      `t11`.`value` AS `of_textId`
    FROM (
      SELECT
        ROW_NUMBER() OVER (ORDER BY `t10`.`value` ASC) - 1 AS `id`,
        `t10`.`value`
      FROM (
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t1`.`name` AS `value`
            FROM `kernels` AS `t1`
          ) AS `t5`
          UNION DISTINCT
          SELECT
            *
          FROM (
            SELECT
              `t1`.`demangled_name` AS `value`
            FROM `kernels` AS `t1`
          ) AS `t6`
        ) AS `t8`
        UNION DISTINCT
        SELECT
          *
        FROM (
          SELECT
            *
          FROM (
            SELECT
              `t2`.`name` AS `value`
            FROM `api_calls` AS `t2`
          ) AS `t7`
          UNION DISTINCT
          SELECT
            *
          FROM (
            SELECT
              `t0`.`path` AS `value`
            FROM `annotations` AS `t0`
          ) AS `t4`
        ) AS `t9`
      ) AS `t10`
    ) AS `t11`
  ) AS `t13`
    ON `t3`.`path` = `t13`.`of_textId`
) AS `t14`
