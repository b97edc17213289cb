SELECT
  `t0`.`run`,
  `t0`.`rank`,
  `t0`.`step`,
  `t0`.`start_ns` AS `start`,
  `t0`.`process_id` * 16777216 AS `globalPid`,
  `t0`.`device_id` AS `deviceId`,
  `t0`.`context_id` AS `contextId`,
  `t0`.`stream_id` AS `streamId`,
  `t0`.`correlation_id` AS `correlationId`,
  `t0`.`operation` AS `memoryOperationType`,
  `t0`.`memory_kind` AS `memKind`,
  `t0`.`address`,
  `t0`.`num_bytes` AS `bytes`
FROM `memory_ops` AS `t0`
