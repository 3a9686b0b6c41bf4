// Passkeys: the one thing that the pages cannot do without a script.
//
// <form data-passkey="create|get" data-options="/path"> asks /path, with the form's fields,
// for options and the id of their challenge, lets the browser make or use a passkey, puts
// the answer into the form's field "answer" and sends the form.
'use strict';

const sentences = {
  NotAllowedError: 'The passkey was not used: cancelled, or it took too long.',
  InvalidStateError: 'This device has a passkey for this account already.',
  SecurityError: 'This address is not the one that passkeys are made for.',
  options: 'The server did not answer. Reload the page and try again.',
  other: 'This passkey cannot be used here. Try another way.',
};

const bytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));

const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

const withIds = (list) => list.map((entry) => ({ ...entry, id: bytes(entry.id) }));

async function askOptions(form) {
  const reply = await fetch(form.dataset.options, {
    method: 'POST',
    body: new URLSearchParams(new FormData(form)),
    credentials: 'same-origin',
    redirect: 'error',
  });
  if (!reply.ok) throw new Error('options');
  return reply.json();
}

async function create(options) {
  const made = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: withIds(options.excludeCredentials),
    },
  });
  return {
    authenticator_data: text(made.response.getAuthenticatorData()),
    client_data: text(made.response.clientDataJSON),
    credential: text(made.rawId),
    transports: made.response.getTransports().join(),
  };
}

async function get(options) {
  const used = await navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      allowCredentials: withIds(options.allowCredentials),
    },
  });
  const answer = {
    authenticator_data: text(used.response.authenticatorData),
    client_data: text(used.response.clientDataJSON),
    credential: text(used.rawId),
    signature: text(used.response.signature),
  };
  if (used.response.userHandle) answer.user_handle = text(used.response.userHandle);
  return answer;
}

async function run(form) {
  const status = form.querySelector('[role=status]');
  const button = form.querySelector('button');
  button.disabled = true;
  status.textContent = 'Follow what your browser asks.';
  try {
    const { challenge, options } = await askOptions(form);
    const answer = await (form.dataset.passkey === 'create' ? create : get)(options);
    answer.challenge = challenge;
    const name = form.elements.namedItem('name');
    if (name && name.value) answer.name = name.value;
    form.elements.namedItem('answer').value = JSON.stringify(answer);
    form.submit();
  } catch (fault) {
    status.textContent = sentences[fault.name] || sentences[fault.message] || sentences.other;
    button.disabled = false;
    button.focus();
  }
}

for (const form of document.querySelectorAll('form[data-passkey]')) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    run(form);
  });
}
