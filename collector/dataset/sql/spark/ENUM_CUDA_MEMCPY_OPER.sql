SELECT
  `t0`.`id`,
  `t0`.`label`,
  `t0`.`label` AS `name`
FROM `enum_copy_kind` AS `t0`
