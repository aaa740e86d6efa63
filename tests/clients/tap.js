// Checks of one client, told in the Test Anything Protocol.
import assert from 'node:assert/strict'

export { assert }
export const TAILGATE = process.env.FLAVOUR === 'tailgate'
export const SLOW = 'SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id + b.id = c.id * d.id'
let count = 0

export async function check(name, work) {
  count += 1
  try {
    await work()
    console.log(`ok ${count} - ${name}`)
  } catch (error) {
    const line = /checks\.js:(\d+)/.exec(error.stack)?.[1]
    console.log(`not ok ${count} - ${name}\n  # ${String(error.message ?? error).replaceAll('\n', ' | ')} at line ${line}`)
  }
}

export function done() {
  console.log(`1..${count}`)
}

export async function fails(code, work) {
  try {
    await work()
  } catch (error) {
    assert.equal(error.code, code)
    return error
  }
  throw new Error(`no error ${code}`)
}
