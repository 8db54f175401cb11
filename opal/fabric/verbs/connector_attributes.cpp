// Queue pair attributes: librdmacm knows the path, the options know the rest. The queue pairs are
// made with ibv_create_qp and moved from state to state here; rdma_create_qp would choose retries,
// timeouts and depths by itself.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>

#include "connector.hpp"
#include "convert.hpp"

namespace overlap::fabric::verbs {

std::uint8_t Connector::initiator_depth_max() const noexcept {
  return static_cast<std::uint8_t>(
      std::min<int>(options_.read_depth, port_.device.max_qp_init_rd_atom));
}

std::uint8_t Connector::responder_depth_max() const noexcept {
  return static_cast<std::uint8_t>(std::min<int>(options_.read_depth, port_.device.max_qp_rd_atom));
}

bool Connector::resolve_address(Connection& connection) noexcept {
  // From our own address: on a host with several devices the route alone might choose another.
  IpAddress own = port_.ip;
  return rdma_resolve_addr(connection.id.get(), own.socket_address(),
                           connection.peer.socket_address(),
                           static_cast<int>(options_.connect_timeout_ms)) == 0;
}

bool Connector::resolve_route(Connection& connection) noexcept {
  return rdma_resolve_route(connection.id.get(), static_cast<int>(options_.connect_timeout_ms)) ==
         0;
}

rdma_conn_param Connector::parameters(const Connection& connection) const noexcept {
  rdma_conn_param parameters{};
  parameters.responder_resources = connection.responder_depth;
  parameters.initiator_depth = connection.initiator_depth;
  parameters.flow_control = 1;
  parameters.retry_count = static_cast<std::uint8_t>(options_.retry_count);
  parameters.rnr_retry_count = static_cast<std::uint8_t>(options_.rnr_retry_count);
  parameters.srq = 1;
  parameters.qp_num = connection.device_queue_pair->qp_num;
  return parameters;
}

bool Connector::send_request(Connection& connection) noexcept {
  if (!modify(connection, IBV_QPS_INIT)) return false;
  rdma_conn_param all = parameters(connection);
  all.private_data = connection.data.bytes.data();
  all.private_data_len = connection.data.size_bytes;
  return rdma_connect(connection.id.get(), &all) == 0;
}

bool Connector::finish(Connection& connection) noexcept {
  return modify(connection, IBV_QPS_RTR) && modify(connection, IBV_QPS_RTS) &&
         rdma_establish(connection.id.get()) == 0;
}

bool Connector::send_answer(Connection& connection) noexcept {
  // On iWARP the kernel moves the queue pair on by itself.
  const bool ready = modify(connection, IBV_QPS_INIT) &&
                     (port_.transport == Transport::iwarp ||
                      (modify(connection, IBV_QPS_RTR) && modify(connection, IBV_QPS_RTS)));
  if (!ready) return false;
  rdma_conn_param all = parameters(connection);
  return rdma_accept(connection.id.get(), &all) == 0;
}

bool Connector::modify(Connection& connection, ibv_qp_state state) noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(connection.id.get(), &attributes, &mask) != 0) return false;
  add_ours(connection, attributes, mask);
  const int error = ibv_modify_qp(connection.device_queue_pair, &attributes, mask);
  if (error != 0) errno = error;
  return error == 0;
}

/// Only what the mask names already is replaced: it depends on the state and on the kind of
/// network.
void Connector::add_ours(const Connection& connection, ibv_qp_attr& attributes,
                         int& mask) const noexcept {
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) {
    attributes.qp_access_flags = access_flags(access::local_write | connection.remote_rights,
                                              atomics_, port_.transport == Transport::iwarp);
  }
  if ((mask & IBV_QP_PATH_MTU) != 0 && options_.mtu_bytes != 0) {
    attributes.path_mtu =
        static_cast<ibv_mtu>(std::min<int>(attributes.path_mtu, mtu_code(options_.mtu_bytes)));
  }
  if ((mask & IBV_QP_AV) != 0) set_path(attributes.ah_attr, options_);
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0)
    attributes.max_dest_rd_atomic = connection.responder_depth;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) attributes.max_rd_atomic = connection.initiator_depth;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0)
    attributes.min_rnr_timer = static_cast<std::uint8_t>(options_.rnr_timer);
  if ((mask & IBV_QP_TIMEOUT) != 0)
    attributes.timeout = static_cast<std::uint8_t>(options_.timeout_exponent);
  if ((mask & IBV_QP_RETRY_CNT) != 0)
    attributes.retry_cnt = static_cast<std::uint8_t>(options_.retry_count);
  if ((mask & IBV_QP_RNR_RETRY) != 0)
    attributes.rnr_retry = static_cast<std::uint8_t>(options_.rnr_retry_count);
}

}  // namespace overlap::fabric::verbs
