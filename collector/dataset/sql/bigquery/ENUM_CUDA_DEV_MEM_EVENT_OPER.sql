SELECT
  `t0`.`id`,
  `t0`.`label`,
  `t0`.`label` AS `name`
FROM `enum_memory_operation` AS `t0`
