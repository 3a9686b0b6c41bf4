#ifndef BH_HTTP_SERVER_SOCKET_H
#define BH_HTTP_SERVER_SOCKET_H

/* Clients' sockets that libmicrohttpd is done with. */

/* Send what is written at once, and find out that the other machine is gone, however silent it was. */
void bh_socket_keep_alive(int fd);

/* Keep no more than some KiB that the client has not taken, so that what it is sent is new. */
void bh_socket_keep_fresh(int fd);

/* A descriptor of the caller's for the socket behind `fd`; behind `fd`, which libmicrohttpd goes on to
 * shut down and close, is a socket that leads nowhere.  -1: there are no descriptors, nothing is changed. */
int bh_socket_take(int fd);

#endif
