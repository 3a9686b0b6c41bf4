#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probe/probe.h"

#ifndef AF_SMC
#define AF_SMC 43
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif
enum {
    KEY_PROTOCOL = 2,
    CAN_RAW = 1,
    SMC_INET = 0,
    SCTP = 132,
    DCCP = 33,
    MPTCP = 262,
    SOCKET_DCCP = 6,
    BLUETOOTH_HCI = 1
};

static int
try_socket(int family, int type, int protocol)
{
    return bh_probe_result(socket(family, type | SOCK_CLOEXEC, protocol));
}

#define BH_TRY_SOCKET(name, family, type, protocol)                                                          \
    int bh_try_##name(const struct bh_targets *targets)                                                      \
    {                                                                                                        \
        return try_socket(family, type, protocol);                                                           \
    }

BH_TRY_SOCKET(socket_alg, AF_ALG, SOCK_SEQPACKET, 0)
BH_TRY_SOCKET(socket_vsock, AF_VSOCK, SOCK_STREAM, 0)
BH_TRY_SOCKET(socket_packet, AF_PACKET, SOCK_RAW, 0)
BH_TRY_SOCKET(socket_rxrpc, AF_RXRPC, SOCK_DGRAM, AF_INET)
BH_TRY_SOCKET(socket_key, AF_KEY, SOCK_RAW, KEY_PROTOCOL)
BH_TRY_SOCKET(socket_bluetooth, AF_BLUETOOTH, SOCK_RAW, BLUETOOTH_HCI)
BH_TRY_SOCKET(socket_can, AF_CAN, SOCK_RAW, CAN_RAW)
BH_TRY_SOCKET(socket_tipc, AF_TIPC, SOCK_RDM, 0)
BH_TRY_SOCKET(socket_rds, AF_RDS, SOCK_SEQPACKET, 0)
BH_TRY_SOCKET(socket_xdp, AF_XDP, SOCK_RAW, 0)
BH_TRY_SOCKET(socket_smc, AF_SMC, SOCK_STREAM, SMC_INET)
BH_TRY_SOCKET(netlink_netfilter, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)
BH_TRY_SOCKET(netlink_xfrm, AF_NETLINK, SOCK_RAW, NETLINK_XFRM)
BH_TRY_SOCKET(netlink_audit, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)
BH_TRY_SOCKET(netlink_uevent, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)
BH_TRY_SOCKET(netlink_generic, AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)
BH_TRY_SOCKET(socket_raw, AF_INET, SOCK_RAW, IPPROTO_ICMP)
BH_TRY_SOCKET(socket_raw6, AF_INET6, SOCK_RAW, IPPROTO_ICMPV6)
BH_TRY_SOCKET(socket_sctp, AF_INET, SOCK_STREAM, SCTP)
BH_TRY_SOCKET(socket_dccp, AF_INET, SOCKET_DCCP, DCCP)
BH_TRY_SOCKET(socket_mptcp, AF_INET, SOCK_STREAM, MPTCP)
