// Create or use a passkey, and send the result with the form. The options come from the server, as JSON.

const toBytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const toText = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const readIds = (list) => list?.map((each) => ({ ...each, id: toBytes(each.id) }));

async function createPasskey({ publicKey }) {
  const user = { ...publicKey.user, id: toBytes(publicKey.user.id) };
  const authenticatorSelection = { ...publicKey.authenticatorSelection, residentKey: "preferred", requireResidentKey: false };
  const made = await navigator.credentials.create({
    publicKey: {
      ...publicKey,
      user,
      authenticatorSelection,
      challenge: toBytes(publicKey.challenge),
      excludeCredentials: readIds(publicKey.excludeCredentials),
    },
  });
  return describe(made, { attestationObject: toText(made.response.attestationObject), transports: made.response.getTransports?.() ?? [] });
}

async function usePasskey({ publicKey }) {
  const used = await navigator.credentials.get({
    publicKey: { ...publicKey, challenge: toBytes(publicKey.challenge), allowCredentials: readIds(publicKey.allowCredentials) },
  });
  const { authenticatorData, signature, userHandle } = used.response;
  return describe(used, {
    authenticatorData: toText(authenticatorData),
    signature: toText(signature),
    userHandle: userHandle ? toText(userHandle) : null,
  });
}

function describe(credential, response) {
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: { clientDataJSON: toText(credential.response.clientDataJSON), ...response },
  };
}

async function loadOptions(form) {
  if (form.dataset.options) return JSON.parse(form.dataset.options);
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  return (await answer.json()).request_options;
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !window.PublicKeyCredential;
  form.addEventListener("submit", async (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    const problem = form.querySelector("[data-passkey-error]");
    problem.hidden = true;
    try {
      const options = await loadOptions(form);
      const credential = await (form.dataset.passkey === "create" ? createPasskey(options) : usePasskey(options));
      form.elements.credential.value = JSON.stringify(credential);
      form.requestSubmit();
    } catch {
      problem.textContent = form.dataset.failed;
      problem.hidden = false;
    }
  });
}
