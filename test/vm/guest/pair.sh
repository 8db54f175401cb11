# Job of the two guests that share a wire. The second one only serves the first one's commands.
# SPDX-License-Identifier: BSD-3-Clause
. /out/settings.sh
. "$VM_SOURCE/guest/lib.sh"
. "$VM_SOURCE/guest/mpi.sh"
check=$VM_BUILD/test/vm/verbs_check
agent=$VM_SOURCE/guest/agent.sh

load crc32_generic rdma_rxe rdma_ucm
rdma link add rxe0 type rxe netdev eth0
until [ -e /dev/infiniband/rdma_cm ]; do sleep 0.1; done

if [ "$VM_ID" = 2 ]; then
    rm -f /run/end
    busybox nc -ll -p 2222 -e bash &
    until [ -e /run/end ]; do sleep 0.2; done
    exit 0
fi

there() { bash "$agent" vm2 "$@"; }
for ((left = 300; left > 0; left--)); do
    [ "$(there hostname 2>/dev/null)" = vm2 ] && break
    sleep 0.3
done
if [ $left = 0 ]; then
    fail "the second guest does not answer"
    exit 1
fi

# both SCENARIO: one process on each guest
both() {
    there "timeout 60 $check $1 listen 3000" &
    run "two guests: $1" 60 $check "$1" 10.0.0.2 3000
    wait $!
}
both pingpong

printf 'vm1 slots=2\nvm2 slots=2\n' >/run/hosts
# mpi PML RANKS BTLS PROGRAM
mpi() {
    run "two guests: $4 btl/$3, pml/$1, np $2" 90 mpirun --hostfile /run/hosts --map-by node --mca plm_rsh_agent "$agent" \
        --mca plm_rsh_no_tree_spawn 1 --leave-session-attached --mca oob_tcp_if_include eth0 \
        -x OVERLAP_TEST_SECONDS -x OVERLAP_TEST_ROUNDS -x OVERLAP_TEST_SEEDS -x OMPI_MCA_mca_base_component_path \
        -n "$2" --mca pml "$1" --mca btl "$3,self" "$programs/$4"
}
mpi speculative 2 ring random
mpi speculative 4 ring,vader random
mpi ob1 2 ring random
both link-down

there "touch /run/end"
