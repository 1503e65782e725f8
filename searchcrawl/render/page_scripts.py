"""What is run in a page: to see when it is done, to scroll it, and to read it. Nothing that it answers is trusted."""

from __future__ import annotations

from typing import Final

#: Begins to note when the tree of the document changed last.
WATCH: Final = """() => {
  let last = performance.now();
  const note = () => { last = performance.now(); };
  const options = {subtree: true, childList: true, characterData: true, attributes: true};
  new MutationObserver(note).observe(document, options);
  globalThis.__quietSince = () => performance.now() - last;
}"""

#: Milliseconds since the tree changed last; null where the page was replaced. A page that is still loading is quiet while a
#: busy machine has not yet run its scripts: so one second more is waited for, no longer, as some pages never say that they
#: are complete.
QUIET_MS: Final = """() => globalThis.__quietSince
  ? Math.max(0, globalThis.__quietSince() - (document.readyState === 'complete' ? 0 : 1000)) : null"""

#: Goes to the end of the page; true if there was more of it.
SCROLL: Final = """() => {
  const page = document.scrollingElement || document.documentElement;
  const before = page.scrollTop;
  page.scrollTop = page.scrollHeight;
  return page.scrollTop > before;
}"""

#: What a browser of a crawler does not need, and what finds other ways out.
HIDE: Final = """(() => {
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel', 'WebTransport'])
    try { delete globalThis[name]; globalThis[name] = undefined; } catch (error) { /* it stays behind the proxy */ }
  globalThis.open = () => null;
})()"""

#: Whether the page was read to its end, and the scripts that belong to it have run, those that were put off as well.
IS_PARSED: Final = """() => document.readyState === 'complete'
  || performance.getEntriesByType('navigation')[0]?.domContentLoadedEventEnd > 0"""

#: The name of a password field, perhaps empty; null of all other elements.
FIELD_NAME: Final = "element => element.type === 'password' ? element.name || '' : null"

#: Whether the page shows a password field.
SHOWS_FORM: Final = """() => [...document.querySelectorAll('input[type=password]')].some(
  field => field.checkVisibility({visibilityProperty: true}))"""

#: Whether the page has a text, as it is seen or as it is written.
SHOWS: Final = """text => {
  const page = document.documentElement;
  return page !== null && (page.innerText.includes(text) || page.outerHTML.includes(text));
}"""

#: The document as text, at most so many characters, else null. Open shadow roots and frames of the same origin stand in
#: the places of their hosts.
READ: Final = """limit => {
  const doctype = document.doctype ? '<!DOCTYPE html>' : '';
  const inert = document.implementation.createHTMLDocument('');
  const inside = element => {
    if (element.localName !== 'iframe' && element.localName !== 'frame') return null;
    try { return element.contentDocument && element.contentDocument.body; } catch (error) { return null; }
  };
  const all = [...document.querySelectorAll('*')];
  const plain = !all.some(element => element.shadowRoot || inside(element));
  const copyChildren = (from, to) => { for (const child of from.childNodes) copy(child, to); };
  const copy = (node, to) => {
    if (node.nodeType === 3) { to.append(inert.createTextNode(node.data)); return; }
    if (node.nodeType !== 1) return;
    if (node.localName === 'slot') {
      const given = node.assignedNodes({flatten: true});
      if (given.length) { for (const child of given) copy(child, to); return; }
    }
    const body = inside(node);
    const made = body ? inert.createElement('div') : inert.importNode(node, false);
    to.append(made);
    if (body) copyChildren(body, made);
    else if (node.localName === 'template') made.innerHTML = node.innerHTML;
    else copyChildren(node.shadowRoot || node, made);
  };
  let text = null;
  if (plain) text = document.documentElement.outerHTML;
  else {
    const root = inert.createElement('div');
    try { copy(document.documentElement, root); text = root.innerHTML; }
    catch (error) { text = document.documentElement.outerHTML; }
  }
  return typeof text === 'string' && text.length <= limit ? doctype + text : null;
}"""
