# Job of the single guest: what the provider says on a machine that lacks something, then everything on one Soft-RoCE device.
# SPDX-License-Identifier: BSD-3-Clause
. /out/settings.sh
. "$VM_SOURCE/guest/lib.sh"
check=$VM_BUILD/test/vm/verbs_check

# --- What is missing is said ---
says "no device" 'no_device: this host has no RDMA device|find: no: this host has no RDMA device' $check probe
load crc32_generic rdma_rxe # rxe wants crc32 at run time; modprobe does not know
rdma link add rxe0 type rxe netdev eth0
says "no connection manager" 'the kernel module rdma_ucm is not loaded' $check probe
load rdma_ucm
until [ -e /dev/infiniband/rdma_cm ]; do sleep 0.1; done
says "a device" '^find: yes$|^open: rxe0:1 inline [0-9]+ gather 3 .* atomics 1/0 rnr 1 rate [0-9]+ fork 1|^register: 1 MiB done' $check probe
says "another device's name" 'there is no RDMA device mlx5_9; this host has rxe0' $check probe mlx5_9
says "a port that is not there" 'bad_option: rxe0 has no port 2|find: no: rxe0 has no port 2' $check probe rxe0:2
ip link set eth0 down
says "link down" 'rxe0:1 is not active' $check probe
ip link set eth0 up
ip addr flush dev eth0
says "no IP address" 'rxe0:1 has no IP address' $check probe
ip addr add "10.0.0.$VM_ID/24" dev eth0
# The first device is not the fastest: veth says 10 Gbit/s.
load veth
ip link add veth0 type veth peer name veth1
ip addr add 10.0.1.1/24 dev veth0
ip link set veth0 up
ip link set veth1 up
rdma link add rxe1 type rxe netdev veth0
says "the fastest port" '^find: yes$|^open: rxe1:1 .*|^register: 1 MiB done' $check probe
says "a slower port, by name" '^find: yes$|^open: rxe0:1 .*|^register: 1 MiB done' $check probe rxe0
ip addr flush dev veth0
says "the fastest port that has an address" '^find: yes$|^open: rxe0:1 .*|^register: 1 MiB done' $check probe
rdma link delete rxe1
ip link delete veth0
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
chmod 600 /dev/infiniband/uverbs0
says "no permission for the device" '(find: no|open: no_permission): cannot open rxe0 .*/dev/infiniband/uverbs0.*ermission' $nobody $check probe
chmod 666 /dev/infiniband/uverbs0
chmod 600 /dev/infiniband/rdma_cm
says "no permission for connections" '(find: no|open: no_permission): cannot open /dev/infiniband/rdma_cm.*ermission' $nobody $check probe
chmod 666 /dev/infiniband/rdma_cm
says "no memory may be locked" '(find: no|open: memory_limit): .*RLIMIT_MEMLOCK.*ulimit -l' bash -c "ulimit -l 0; exec $nobody $check probe"
says "too little memory may be locked" '^find: yes$|^open: rxe0:1|^register: 1 MiB Cannot allocate memory' \
    bash -c "ulimit -l 64; exec $nobody $check probe"

# --- One device ---
run "ping-pong" 60 $check pingpong 1000
run "nobody to connect to" 60 $check nobody
run "idle peer killed" 60 $check killed
run "busy peer killed" 60 $check killed-busy

# --- The rules of fabric.hpp ---
export OVERLAP_FABRIC=verbs
run "contract test" 120 "$VM_BUILD/opal/fabric/fabric_contract_test" -d yes

# --- MPI over btl/ring ---
. "$VM_SOURCE/guest/mpi.sh"
# mpi PML PROGRAM
mpi() { run "$2 btl/ring, pml/$1, np 2" 90 mpirun -n 2 --mca pml "$1" --mca btl ring,self "$programs/$2"; }
for program in pt2pt completion matching random; do mpi speculative $program; done
# ob1 itself fails in completion, on any BTL: its receives do not bear truncated large messages.
for program in pt2pt random; do mpi ob1 $program; done
mpi speculative ring_onesided
OMPI_MCA_common_overlap_progress=on OMPI_MCA_pml_speculative_speculation=0 mpi speculative progress
# Here memory that was exchanged behind a registration would be read as it was (P3.5). Every buffer counts as used often at once.
export OVERLAP_TEST_FREQUENT=1 OMPI_MCA_btl_ring_costs=1,0,1000000000,0,0
export OMPI_MCA_btl_ring_slot_bytes=12288 OMPI_MCA_btl_ring_channel_bytes=16384
for pml in speculative ob1; do mpi $pml ring_frequent; done
