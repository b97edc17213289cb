SELECT
  `t0`.`id`,
  `t0`.`label`,
  `t0`.`label` AS `name`
FROM `enum_launch_type` AS `t0`
