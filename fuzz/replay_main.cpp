// Runs the files named on the command line through the fuzzer's function, for compilers without libFuzzer.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// An escaping exception is a finding, and ends the program.
int main(int count, char** arguments) {  // NOLINT(bugprone-exception-escape)
  for (int i = 1; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    if (!file) {
      std::cerr << "cannot read " << arguments[i] << "\n";
      return 2;
    }
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::cerr << arguments[i] << "\n";  // printed first, because a failure ends the program
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::cout << count - 1 << " inputs, each a valid file or one clear error\n";
  return 0;
}
