/* Structured payloads of NVTX, through NVIDIA's header: with the schemas that XLA registers, and with other types. */
#include <nvtx3/nvToolsExtPayload.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void (*Launch)(const char* kernel);

/* As in XLA's class ModuleAnnotation: the payload is an object of which the schema describes a part. */
struct Module {
  void* longest_prefix[4];
  nvtxStringHandle_t title;
  nvtxStringHandle_t module_name;
  nvtxStringHandle_t common_src_locations;
  int32_t module_id;
  int32_t common_stack_frames;
};

struct Instruction {
  nvtxStringHandle_t src_locations;
  nvtxStringHandle_t hlo_dump;
  nvtxStringHandle_t called_hlo_dump;
};

static nvtxPayloadSchemaEntry_t entry(uint64_t type, const char* name, uint64_t offset) {
  nvtxPayloadSchemaEntry_t entry;
  memset(&entry, 0, sizeof(entry));
  entry.type = type;
  entry.name = name;
  entry.offset = offset;
  return entry;
}

static uint64_t schema(nvtxDomainHandle_t domain, const char* name, const nvtxPayloadSchemaEntry_t* entries,
                       size_t count, size_t size) {
  nvtxPayloadSchemaAttr_t attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  attributes.name = name;
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = entries;
  attributes.numEntries = count;
  attributes.payloadStaticSize = size;
  return nvtxPayloadSchemaRegister(domain, &attributes);
}

static void push(nvtxDomainHandle_t domain, nvtxStringHandle_t title, const nvtxPayloadData_t* data, size_t count) {
  nvtxEventAttributes_t event;
  memset(&event, 0, sizeof(event));
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = title;
  event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  event.reserved0 = (int32_t)count;
  event.payload.ullValue = (uint64_t)(uintptr_t)data;
  nvtxDomainRangePushEx(domain, &event);
}

void run_xla(Launch launch) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("TSL");
  const nvtxPayloadSchemaEntry_t of_module[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "Name", offsetof(struct Module, module_name)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "Unique ID", offsetof(struct Module, module_id)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "Common source locations",
            offsetof(struct Module, common_src_locations)),
  };
  const nvtxPayloadSchemaEntry_t of_instruction[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "Source locations",
            offsetof(struct Instruction, src_locations)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "HLO", offsetof(struct Instruction, hlo_dump)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "Called HLO",
            offsetof(struct Instruction, called_hlo_dump)),
  };
  const uint64_t module_schema = schema(domain, "XlaModule", of_module, 3, sizeof(struct Module));
  const uint64_t instruction_schema = schema(domain, "XlaInstruction", of_instruction, 3, sizeof(struct Instruction));

  struct Module module;
  memset(&module, 0xA5, sizeof(module));
  module.title = nvtxDomainRegisterStringA(domain, "XlaModule:#prefix=jit(step),hlo_module=jit_step,program_id=7#");
  module.module_name = nvtxDomainRegisterStringA(domain, "jit_step");
  module.common_src_locations = 0;
  module.module_id = 7;
  struct Instruction instruction;
  instruction.src_locations = nvtxDomainRegisterStringA(domain, "\n- train.py:12[step] dot\n");
  instruction.hlo_dump = nvtxDomainRegisterStringA(domain, "dot.3 = f32[4,4] dot(a, b)");
  instruction.called_hlo_dump = nvtxDomainRegisterStringA(domain, "\n");
  nvtxStringHandle_t dot = nvtxDomainRegisterStringA(
      domain, "Thunk:#name=jit(main)/transpose[permutation=(1, 0)],hlo_op=dot.3,unique_hlo_op_id=3#");
  nvtxStringHandle_t fusion = nvtxDomainRegisterStringA(domain, "Thunk:#hlo_op=fusion.6,unique_hlo_op_id=6#");

  const nvtxPayloadData_t of_step = {module_schema, sizeof(module), &module};
  const nvtxPayloadData_t of_dot = {instruction_schema, sizeof(instruction), &instruction};
  push(domain, module.title, &of_step, 1);
  push(domain, dot, &of_dot, 1);
  launch("dot");
  nvtxDomainRangePop(domain);
  push(domain, fusion, 0, 0);
  launch("fusion");
  nvtxDomainRangePop(domain);
  nvtxDomainRangePop(domain);
}

struct Inner {
  uint8_t flag;
  double ratio;
};

struct Outer {
  int16_t negative;
  uint64_t count;
  float few[3];
  char text[8];
  const char* pointer;
  struct Inner inner;
  uint32_t color;
  uint8_t state;
  uint32_t hidden;
};

void run_types(Launch launch) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("types");
  nvtxPayloadEnum_t states[] = {{"IDLE", 0, 0}, {"BUSY", 1, 0}};
  nvtxPayloadEnumAttr_t of_enum;
  memset(&of_enum, 0, sizeof(of_enum));
  of_enum.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                      NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  of_enum.entries = states;
  of_enum.numEntries = 2;
  of_enum.sizeOfEnum = 1;
  const uint64_t state = nvtxPayloadEnumRegister(domain, &of_enum);

  const nvtxPayloadSchemaEntry_t of_inner[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "flag", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "ratio", 0), /* its place follows from its alignment */
  };
  const uint64_t inner = schema(domain, "inner", of_inner, 2, 0);
  nvtxPayloadSchemaEntry_t of_outer[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT16, "negative", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "count", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "few", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8, "pointer", 0),
      entry(inner, "inner", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB, "color", 0),
      entry(state, "state", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "hidden", 0),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "beyond", sizeof(struct Outer)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128, "unknown", 0),
  };
  of_outer[2].flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE;
  of_outer[2].arrayOrUnionDetail = 3;
  of_outer[3].arrayOrUnionDetail = 8;
  of_outer[8].flags = NVTX_PAYLOAD_ENTRY_FLAG_HIDE;
  const uint64_t outer = schema(domain, "outer", of_outer, sizeof(of_outer) / sizeof(of_outer[0]), 0);

  struct Outer value = {-2, 1u << 20, {0.5f, 1.5f, -1.0f}, "in\tside", "elsewhere", {1, 0.25}, 0xff00ff00, 1, 42};
  const nvtxPayloadData_t data[] = {
      {outer, sizeof(value), &value},
      {NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, 5, "plain text"},
      {outer + 1000, sizeof(value), &value},
      {outer, 2, &value},
  };
  push(domain, nvtxDomainRegisterStringA(domain, "all types"), data, 4);
  launch("all types");
  nvtxDomainRangePop(domain);
  void* handle_of_nobody[1] = {&value};
  const nvtxPayloadSchemaEntry_t of_string[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "string", 0)};
  const nvtxPayloadData_t strange = {schema(domain, 0, of_string, 1, 8), sizeof(handle_of_nobody), handle_of_nobody};
  push(domain, nvtxDomainRegisterStringA(domain, "strange"), &strange, 1);
  launch("strange");
  nvtxDomainRangePop(domain);
}

/* Texts and arrays that are longer than what is kept of a text, and a text that ends as those of PyTorch's ops do. */
void run_long(Launch launch) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("long");
  static int32_t numbers[5001];
  for (int i = 0; i < 5000; ++i) numbers[i] = 1000 + i;
  numbers[5000] = 7;
  static char text[10001];
  memset(text, 'x', 10000);
  memset(text, ' ', 100);
  memset(text + 4000, ' ', 1000);
  nvtxPayloadSchemaEntry_t of_array[] = {entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "numbers", 0),
                                         entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "behind", 0)};
  of_array[0].flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE;
  of_array[0].arrayOrUnionDetail = 5000;
  nvtxPayloadSchemaEntry_t of_hidden_array[] = {of_array[0], of_array[1]};
  of_hidden_array[0].flags |= NVTX_PAYLOAD_ENTRY_FLAG_HIDE;
  const nvtxPayloadSchemaEntry_t of_pointer[] = {entry(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "pointer", 0)};
  const char* pointer = text;
  const nvtxPayloadData_t data[] = {
      {schema(domain, "array", of_array, 2, sizeof(numbers)), sizeof(numbers), numbers},
      {schema(domain, "hidden", of_hidden_array, 2, sizeof(numbers)), sizeof(numbers), numbers},
      {schema(domain, "pointer", of_pointer, 1, sizeof(pointer)), sizeof(pointer), &pointer},
      {NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, text},
      {NVTX_PAYLOAD_ENTRY_TYPE_INT32, sizeof(numbers), numbers},
      {NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, SIZE_MAX, "loss, seq = 5"},
  };
  static const char* const names[] = {"array", "hidden array", "pointer", "text", "numbers", "like an op"};
  for (size_t i = 0; i < 6; ++i) {
    push(domain, nvtxDomainRegisterStringA(domain, names[i]), &data[i], 1);
    launch(names[i]);
    nvtxDomainRangePop(domain);
  }
}

enum { MANY = 300, PAYLOADS = 40, VALUES = 1000, SCHEMAS = 5000 };

/* More entries, payloads and values than few. */
void run_many(Launch launch) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("many");
  static nvtxPayloadSchemaEntry_t of_numbers[MANY];
  static uint8_t numbers[MANY];
  for (int i = 0; i < MANY; ++i) {
    of_numbers[i] = entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "", (uint64_t)i);
    numbers[i] = (uint8_t)i;
  }
  const nvtxPayloadData_t data = {schema(domain, "numbers", of_numbers, MANY, MANY), MANY, numbers};
  push(domain, nvtxDomainRegisterStringA(domain, "entries"), &data, 1);
  launch("entries");
  nvtxDomainRangePop(domain);

  static nvtxPayloadData_t all[PAYLOADS];
  static int32_t each[PAYLOADS];
  for (int i = 0; i < PAYLOADS; ++i) {
    each[i] = i;
    all[i] = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_INT32, sizeof(each[i]), &each[i]};
  }
  push(domain, nvtxDomainRegisterStringA(domain, "payloads"), all, PAYLOADS);
  launch("payloads");
  nvtxDomainRangePop(domain);

  static nvtxPayloadEnum_t values[VALUES];
  memset(values, 0, sizeof(values));
  for (int i = 0; i < VALUES; ++i) values[i] = (nvtxPayloadEnum_t){i == VALUES - 1 ? "LAST" : "OTHER", (uint64_t)i, 0};
  nvtxPayloadEnumAttr_t of_enum;
  memset(&of_enum, 0, sizeof(of_enum));
  of_enum.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                      NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  of_enum.entries = values;
  of_enum.numEntries = VALUES;
  of_enum.sizeOfEnum = 2;
  const nvtxPayloadSchemaEntry_t of_value[] = {entry(nvtxPayloadEnumRegister(domain, &of_enum), "value", 0)};
  const uint16_t last = VALUES - 1;
  const nvtxPayloadData_t value = {schema(domain, "value", of_value, 1, 2), 2, &last};
  push(domain, nvtxDomainRegisterStringA(domain, "enum"), &value, 1);
  launch("enum");
  nvtxDomainRangePop(domain);
}

/* More schemas than are kept; then one that contains one of them, and one with a number of its own. */
void run_full(Launch launch) {
  static uint64_t first = 0;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("full");
  const nvtxPayloadSchemaEntry_t of_number[] = {entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "number", 0)};
  uint64_t last = 0;
  for (int i = 0; i < SCHEMAS; ++i) {
    last = schema(domain, "number", of_number, 1, 1);
    if (first == 0) first = last;
  }
  nvtxPayloadSchemaAttr_t attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = of_number;
  attributes.numEntries = 1;
  attributes.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5;
  nvtxPayloadSchemaRegister(domain, &attributes);
  const uint8_t number = 7;
  const nvtxPayloadData_t data[] = {{first, 1, &number}, {last, 1, &number}, {attributes.schemaId, 1, &number}};
  push(domain, nvtxDomainRegisterStringA(domain, "known"), data, 1);
  launch("known");
  nvtxDomainRangePop(domain);
  push(domain, nvtxDomainRegisterStringA(domain, "last"), data, 3);
  launch("last");
  nvtxDomainRangePop(domain);
  push(domain, nvtxDomainRegisterStringA(domain, "own number"), data + 2, 1);
  launch("own number");
  nvtxDomainRangePop(domain);
}
