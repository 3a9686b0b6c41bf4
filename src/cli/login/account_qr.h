#ifndef BH_CLI_LOGIN_ACCOUNT_QR_H
#define BH_CLI_LOGIN_ACCOUNT_QR_H

/* Show `text` as a QR code on standard output, by qrencode where it is installed and
 * standard output is a terminal; the text goes in through a pipe.  Says nothing of itself:
 * the text is shown, too. */
void bh_account_show_qr(const char *text);

#endif
