// The words of verbs and those of fabric.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "convert.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace overlap::fabric::verbs {

CompletionStatus completion_status(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS: return CompletionStatus::success;
    case IBV_WC_LOC_LEN_ERR: return CompletionStatus::length_error;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR: return CompletionStatus::protection_error;
    case IBV_WC_REM_ACCESS_ERR: return CompletionStatus::remote_access_error;
    // What the responder answers when the message is too long for its receive entry, among others.
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
    case IBV_WC_BAD_RESP_ERR: return CompletionStatus::remote_error;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR: return CompletionStatus::retry_exceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR: return CompletionStatus::receive_not_ready_exceeded;
    case IBV_WC_WR_FLUSH_ERR: return CompletionStatus::flushed;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_LOC_RDD_VIOL_ERR:
    case IBV_WC_INV_EECN_ERR:
    case IBV_WC_INV_EEC_STATE_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
    case IBV_WC_TM_ERR:
    case IBV_WC_TM_RNDV_INCOMPLETE: return CompletionStatus::other_error;
  }
  return CompletionStatus::other_error;  // of a newer libibverbs
}

Opcode completion_opcode(ibv_wc_opcode opcode) noexcept {
  // The code has no bound (drivers add their own), so this is no full switch.
  if ((opcode & IBV_WC_RECV) != 0) return Opcode::receive;
  if (opcode == IBV_WC_RDMA_WRITE) return Opcode::write;
  if (opcode == IBV_WC_RDMA_READ) return Opcode::read;
  if (opcode == IBV_WC_COMP_SWAP) return Opcode::compare_swap;
  if (opcode == IBV_WC_FETCH_ADD) return Opcode::fetch_add;
  return Opcode::send;
}

Completion completion(const ibv_wc& entry) noexcept {
  Completion result;
  result.id = entry.wr_id;
  result.status = completion_status(entry.status);
  if (entry.status != IBV_WC_SUCCESS) return result;  // the rest is not valid
  result.opcode = completion_opcode(entry.opcode);
  result.bytes = entry.byte_len;
  result.has_immediate = (entry.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (result.has_immediate) result.immediate = ntohl(entry.imm_data);
  return result;
}

ibv_wr_opcode work_opcode(Opcode opcode) noexcept {
  static constexpr std::array<ibv_wr_opcode, 8> codes = {IBV_WR_SEND,
                                                         IBV_WR_SEND_WITH_IMM,
                                                         IBV_WR_RDMA_WRITE,
                                                         IBV_WR_RDMA_WRITE_WITH_IMM,
                                                         IBV_WR_RDMA_READ,
                                                         IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                         IBV_WR_ATOMIC_CMP_AND_SWP,
                                                         IBV_WR_SEND /* receive: not asked for */};
  static_assert(static_cast<int>(Opcode::send_with_immediate) == 1 &&
                static_cast<int>(Opcode::write_with_immediate) == 3 &&
                static_cast<int>(Opcode::fetch_add) == 5 && static_cast<int>(Opcode::receive) == 7);
  return codes[static_cast<std::size_t>(opcode)];
}

unsigned access_flags(unsigned rights, bool atomics, bool iwarp) noexcept {
  unsigned flags = 0;
  if ((rights & access::local_write) != 0) flags |= IBV_ACCESS_LOCAL_WRITE;
  if ((rights & access::remote_read) != 0) flags |= IBV_ACCESS_REMOTE_READ;
  if ((rights & access::remote_write) != 0)
    flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  if ((rights & access::remote_atomic) != 0 && atomics)
    flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
  if (iwarp && (flags & IBV_ACCESS_LOCAL_WRITE) != 0) flags |= IBV_ACCESS_REMOTE_WRITE;
  return flags;
}

void set_path(ibv_ah_attr& path, const VerbsOptions& options) noexcept {
  if (options.service_level >= 0) path.sl = static_cast<std::uint8_t>(options.service_level);
  if (path.is_global == 0) return;
  if (options.traffic_class >= 0)
    path.grh.traffic_class = static_cast<std::uint8_t>(options.traffic_class);
  if (options.gid_index >= 0) path.grh.sgid_index = static_cast<std::uint8_t>(options.gid_index);
}

int mtu_code(std::uint32_t bytes) noexcept {
  switch (bytes) {
    case 256: return IBV_MTU_256;
    case 512: return IBV_MTU_512;
    case 1024: return IBV_MTU_1024;
    case 2048: return IBV_MTU_2048;
    case 4096: return IBV_MTU_4096;
    default: return 0;
  }
}

std::uint32_t rate_mbytes_s(std::uint8_t speed_code, std::uint8_t width_code) noexcept {
  struct Row {
    std::uint8_t code;
    std::uint32_t value;
  };
  // Of one lane, after its line coding: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR.
  static constexpr std::array<Row, 8> lane_mbytes_s = {
      {{1, 250}, {2, 500}, {4, 1000}, {8, 1250}, {16, 1705}, {32, 3125}, {64, 6250}, {128, 12500}}};
  static constexpr std::array<Row, 5> lanes = {{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}};
  const auto value = [](const auto& rows, std::uint8_t code) -> std::uint32_t {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [code](const Row& each) { return each.code == code; });
    return row == rows.end() ? 0 : row->value;
  };
  return value(lane_mbytes_s, speed_code) * value(lanes, width_code);
}

int completion_vector(int vectors, int process) noexcept {
  return vectors > 0 ? process % vectors : 0;
}

std::uint32_t mtu_bytes(int code) noexcept {
  for (const std::uint32_t bytes : {256U, 512U, 1024U, 2048U, 4096U}) {
    if (mtu_code(bytes) == code) return bytes;
  }
  return 0;
}

LastByte last_byte_of_vendor(std::uint32_t vendor_id) noexcept {
#if defined(__x86_64__)
  constexpr bool stores_in_order = true;
#else
  constexpr bool stores_in_order = false;
#endif
  static constexpr std::array<std::uint32_t, 2> emulations = {0x626d74 /* siw */,
                                                              0xffffff /* rxe */};
  static constexpr std::array<std::uint32_t, 11> vendors = {
      0x02c9, 0x15b3, 0x119f,  // Mellanox, NVIDIA (mlx4, mlx5); Bull's
      0x05ad, 0x066a, 0x08f1,
      0x1708, 0x03ba,  // older cards with Mellanox's chips: Cisco, Fujitsu, Voltaire, HP, Sun
      0x1175,          // Intel, Cornelis (qib, hfi1)
      0x1425,          // Chelsio
      0x14e4,          // Broadcom
  };
  const auto is_in = [vendor_id](const auto& list) {
    return std::find(list.begin(), list.end(), vendor_id) != list.end();
  };
  if (is_in(emulations)) return stores_in_order ? LastByte::last : LastByte::assumed_last;
  return is_in(vendors) ? LastByte::assumed_last : LastByte::unknown;
}

}  // namespace overlap::fabric::verbs
