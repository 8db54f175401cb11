// A convertor for plain bytes, without the cost of preparing one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

namespace overlap::speculative {

/// What is left of a convertor when the data is plain bytes: enough for a BTL to find and copy
/// them.
///
/// Preparing a real one costs more than copying a small message; this one is prepared once and only
/// pointed elsewhere.
class ByteConvertor {
 public:
  opal_convertor_t* at(const void* bytes, std::size_t count) noexcept {
    if (!ready_) {
      OBJ_CONSTRUCT(&convertor_, opal_convertor_t);
      opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &ompi_mpi_byte.dt.super, 1,
                                               this, 0, &convertor_);
      ready_ = true;
    }
    convertor_.pBaseBuf = static_cast<unsigned char*>(const_cast<void*>(bytes));
    convertor_.count = count;
    convertor_.local_size = convertor_.remote_size = count;
    convertor_.bConverted = 0;
    convertor_.flags &= ~static_cast<std::uint32_t>(CONVERTOR_COMPLETED);
    return &convertor_;
  }

 private:
  opal_convertor_t convertor_;
  bool ready_ = false;
};

}  // namespace overlap::speculative
