// npm's oidc-provider as the identity provider of oidc_test.py, over TLS on the loopback.
//
//   node provider.mjs FOLDER LOGOUT_URL REDIRECT
//
// FOLDER holds server.pem and .key, the clients' rsa.key, ec.key and client.pem.  Says
// "ready ISSUER"; "rotate" on standard input gives it another signing key.  Anybody may sign in
// under any name; people whose name begins with "a" are in two groups.
import Provider from 'oidc-provider';
import { createPublicKey, createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createInterface } from 'node:readline';

const [folder, logoutUrl, redirect] = process.argv.slice(2);
const read = (name) => readFileSync(`${folder}/${name}`, 'utf8');
const jwkOf = (name, kid) => ({ ...createPublicKey(createPrivateKey(read(name))).export({ format: 'jwk' }), kid, use: 'sig' });
const certificate = new X509Certificate(read('client.pem'));

const common = { redirect_uris: [redirect], response_types: ['code'], grant_types: ['authorization_code', 'refresh_token'] };
const clients = [
  {
    ...common, client_id: 'secret', client_secret: 'p:a%ss w0rd/+', token_endpoint_auth_method: 'client_secret_basic',
    backchannel_logout_uri: logoutUrl, backchannel_logout_session_required: true,
    post_logout_redirect_uris: [`${redirect}/out`],
  },
  { ...common, client_id: 'rsa', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwkOf('rsa.key', 'one')] } },
  { ...common, client_id: 'ec', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwkOf('ec.key', 'two')] } },
  {
    ...common, client_id: 'certificate', token_endpoint_auth_method: 'self_signed_tls_client_auth',
    jwks: { keys: [{ ...certificate.publicKey.export({ format: 'jwk' }), kid: 'c', x5c: [certificate.raw.toString('base64')] }] },
  },
  {
    client_id: 'device', token_endpoint_auth_method: 'none', redirect_uris: [], response_types: [],
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
  },
];

let keys = 0;
function newProvider(issuer) {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const made = new Provider(issuer, {
    clients,
    jwks: { keys: [{ ...key, kid: `key-${keys += 1}`, use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['a key for cookies'] },
    claims: { openid: ['sub'], groups: ['groups'] },
    scopes: ['openid', 'groups'],
    conformIdTokenClaims: false,
    clientAuthMethods: ['client_secret_basic', 'private_key_jwt', 'self_signed_tls_client_auth', 'none'],
    discovery: { mtls_endpoint_aliases: { token_endpoint: `${issuer.replace('127.0.0.1', 'localhost')}/token` } },
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      backchannelLogout: { enabled: true },
      mTLS: {
        enabled: true, selfSignedTlsClientAuth: true,
        getCertificate: (ctx) => ctx.socket.getPeerX509Certificate?.(),
      },
    },
    findAccount: async (ctx, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, groups: id.startsWith('a') ? ['gpu-users', 'ml'] : [] }),
    }),
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    // The provider's own refuses this machine's addresses.
    fetch: (url, { method, headers, body, redirect }) => fetch(url, { method, headers, body, redirect }),
  });
  for (const event of ['server_error', 'backchannel.error']) made.on(event, (ctx, error) => console.error(event, error));
  return made.callback();
}

let answer;
const server = createServer({
  cert: read('server.pem'), key: read('server.key'), requestCert: true, rejectUnauthorized: false,
}, (request, response) => answer(request, response));
server.listen(0, '127.0.0.1', () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  answer = newProvider(issuer);
  console.log(`ready ${issuer}`);
  createInterface({ input: process.stdin }).on('line', () => {
    answer = newProvider(issuer);
    console.log('rotated');
  }).on('close', () => process.exit(0));
});
