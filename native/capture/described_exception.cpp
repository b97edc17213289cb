#include "capture/described_exception.h"

#include <new>
#include <stdexcept>

namespace collector::capture {

DescribedException described(const std::exception_ptr& thrown) noexcept {
  try {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::invalid_argument& error) {
      return {DescribedException::Kind::kBadValue, error.what()};
    }
  } catch (const std::bad_alloc&) {
    return {DescribedException::Kind::kNoMemory, ""};
  } catch (const std::length_error&) {  // a size that no memory can have
    return {DescribedException::Kind::kNoMemory, ""};
  } catch (...) {
    return {};
  }
}

}  // namespace collector::capture
