// The server's token, which stands behind "#" in the address that the command prints; read before anything changes that.
export const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
