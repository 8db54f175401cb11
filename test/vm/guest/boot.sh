# In a guest, after init: a network interface, then /out/job.sh with its output in /out/log and its exit status in /out/status.
# SPDX-License-Identifier: BSD-3-Clause
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for word in $(cat /proc/cmdline); do
    case $word in vm_id=*) export VM_ID=${word#vm_id=} ;; esac
done
hostname "vm$VM_ID"
printf '127.0.0.1 localhost\n10.0.0.1 vm1\n10.0.0.2 vm2\n' >/etc/hosts
ip link set lo up
ip link set eth0 up
ip addr add "10.0.0.$VM_ID/24" dev eth0
ulimit -l unlimited
cd /root
bash /out/job.sh >/out/log 2>&1
echo $? >/out/status
sync
echo o >/proc/sysrq-trigger
sleep 30
